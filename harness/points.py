"""Points: places in a leg where a fault strikes, as text and as data.

    effect:charge_card#1.after          the provider has recorded the first charge of the leg, not answered it
    effect:charge_card(order=o-1)#1.before   only calls with these arguments are counted
    call:lookup#2.before                the leg's second lookup has arrived
    model#2                             the leg's second turn of the model has been asked for
    write#2.after                       the session store has kept the leg's second write, not answered it
    pause#1                             the target has said that a run waits for a person

`#n` counts within the leg, from 1. `before`: nothing recorded; `after`: recorded and not answered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["effect", "call", "write", "model", "pause", "answer"]
Side = Literal["before", "after"]
_TEXT = re.compile(
    r"(?:(?P<kind>effect|call):(?P<name>[a-z][a-z0-9_]*)(?:\((?P<arguments>[^()]*)\))?#(?P<n>[1-9]\d*)"
    r"\.(?P<side>before|after)"
    r"|write#(?P<w>[1-9]\d*)\.(?P<write_side>before|after)"
    r"|(?P<bare>model|pause|answer)#(?P<m>[1-9]\d*))"
)


class PointError(ValueError):
    """A text that is no point; says what a point looks like."""


@dataclass(frozen=True, slots=True)
class Point:
    """One place in a leg. `arguments` holds (name, text) pairs; empty means any arguments."""

    kind: Kind
    n: int
    name: str = ""
    arguments: tuple[tuple[str, str], ...] = ()
    side: Side = "before"

    def __str__(self) -> str:
        if self.kind == "write":
            return f"write#{self.n}.{self.side}"
        if self.kind not in ("effect", "call"):
            return f"{self.kind}#{self.n}"
        inside = ",".join(f"{name}={value}" for name, value in self.arguments)
        return f"{self.kind}:{self.name}{f'({inside})' if inside else ''}#{self.n}.{self.side}"

    def counts(self, kind: str, name: str, arguments: dict[str, object]) -> bool:
        """Return whether an arrival of this kind, name and arguments is one that `#n` counts."""
        if kind != self.kind or (name != self.name and kind != "write"):
            return False
        return all(name in arguments and str(arguments[name]) == value for name, value in self.arguments)


def parse_point(text: str) -> Point:
    """Return the point that `text` names.

    Raises:
        PointError: the text does not have the form described in this module's docstring.
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        raise PointError(
            f"{text!r} is no point: write effect:NAME#N.before, effect:NAME#N.after, call:NAME#N.before, "
            "call:NAME#N.after, write#N.before, write#N.after, model#N, pause#N or answer#N"
        )
    bare = found["bare"]
    if bare is not None:
        return Point(kind=bare, n=int(found["m"]))  # type: ignore[arg-type]  # the pattern allows the three only
    if found["w"] is not None:
        side: Side = found["write_side"]  # type: ignore[assignment]  # the pattern allows the two only
        return Point(kind="write", n=int(found["w"]), side=side)
    pairs = []
    for pair in filter(None, (found["arguments"] or "").split(",")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise PointError(f"{text!r}: arguments are written name=value, found {pair!r}")
        pairs.append((name.strip(), value.strip()))
    return Point(
        kind=found["kind"],  # type: ignore[arg-type]  # the pattern allows the two only
        n=int(found["n"]),
        name=found["name"],
        arguments=tuple(pairs),
        side=found["side"],  # type: ignore[arg-type]  # the pattern allows the two only
    )
