# The two commands a reader needs: `make arena` and `make test`. Both set up what they need.
PYTHON ?= python3.11
VENV := .venv
READY := $(VENV)/.ready
export UV_PYTHON_DOWNLOADS := never
ADAPTER ?=
TRIALS ?= 5

.PHONY: setup arena arena-full test lint bench mutants site serve publish lock clean

setup: $(READY)

$(READY): requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	sed -n '/^uv==/,/[^\\]$$/p' requirements.txt > $(VENV)/uv.txt
	$(VENV)/bin/python -m pip install --quiet --require-hashes --requirement $(VENV)/uv.txt
	VIRTUAL_ENV=$(VENV) $(VENV)/bin/uv pip install --quiet --require-hashes --requirement requirements.txt
	VIRTUAL_ENV=$(VENV) $(VENV)/bin/uv pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

arena: $(READY)
	$(VENV)/bin/plugpull run $(ADAPTER) --trials $(TRIALS)

# Also the modes that wait for an engine's timeouts.
arena-full: $(READY)
	$(VENV)/bin/plugpull run $(ADAPTER) --trials $(TRIALS) --full

test: $(READY) lint
	$(VENV)/bin/python -m pytest

lint: $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

bench: $(READY)
	$(VENV)/bin/python -m arena.bench

# Breaks the harness in two dozen ways and shows what notices each; takes a while.
mutants: $(READY)
	$(VENV)/bin/python -m tests.mutants

site: $(READY)
	$(VENV)/bin/plugpull site

serve: $(READY)
	$(VENV)/bin/plugpull site --serve

publish: $(READY)
	$(VENV)/bin/plugpull publish

# Resolves the harness's own requirements again; commit the result.
lock: $(READY)
	$(VENV)/bin/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
		--extra dev --output-file requirements.txt pyproject.toml requirements.in

clean:
	rm -rf build
