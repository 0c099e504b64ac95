"""The target's side of plugpull: what an agent's tools call instead of the outside world.

Standard library only. Each function is one HTTP request to the Unix socket in `$PLUGPULL_PROVIDER`, so any
language's HTTP client can do the same. It keeps nothing and decides nothing.
"""

import http.client
import json
import os
import socket


class _Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(os.environ["PLUGPULL_PROVIDER"])


class ProviderError(RuntimeError):
    """The provider refused a request; the text is what it said."""


def _post(path, facts, headers=None):
    connection = _Connection("provider")
    try:
        body = json.dumps(facts).encode()
        connection.request("POST", path, body, {"Content-Type": "application/json", **(headers or {})})
        reply = connection.getresponse()
        text = reply.read().decode()
    finally:
        connection.close()
    if reply.status >= 300:
        raise ProviderError(f"{path}: {reply.status} {text}")
    return text


def effect(name, *, key=None, **arguments):
    """Do something to the outside world, e.g. charge a card, and return the provider's answer as text.

    `key` is the Idempotency-Key that a real payment API would be sent; leave it out if the tool has none.
    """
    return _post(f"/effects/{name}", arguments, {"Idempotency-Key": key} if key else None)


def call(tool, **arguments):
    """Ask a tool that only reads (`lookup`, `calculator`) and return its answer as text."""
    return _post(f"/calls/{tool}", arguments)


def store(session, items):
    """Append items (JSON values) to a session of the store; raises if the store does not answer."""
    _post(f"/store/{session}/append", {"items": items})


def stored(session):
    """Return the items that a session of the store holds."""
    return json.loads(_post(f"/store/{session}/items", {}))


def unstore(session):
    """Remove the last item of a session from the store and return it, or None."""
    return json.loads(_post(f"/store/{session}/pop", {}))


def clear(session):
    """Remove every item of a session from the store."""
    _post(f"/store/{session}/clear", {})


def paused():
    """Say that the framework has saved a run that waits for a person's decision."""
    _post("/paused", {})


def answer(text):
    """Hand in the final answer of a run that has finished."""
    _post("/answer", {"text": text})


def hello(**facts):
    """Say what the target is, e.g. `hello(framework="langgraph", version="1.2.24")`."""
    _post("/hello", facts)
