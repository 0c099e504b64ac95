"""The world of an agent: its provider and tools on Unix sockets, its model on loopback.

Everything the agent does outside its process arrives here and becomes an event of the trial's history, with
the caller's pid from the kernel. A request that stands at a fault's point is held until the fault is over.
The world knows no framework and no scenario, starts no process and judges nothing.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import hashlib
import hmac
import json
import operator
import secrets
import socket
import time
from asyncio.trsock import TransportSocket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import kernel, wire
from harness.faults import Fault
from harness.history import Event, History, canonical
from harness.model import Refused, Workload, identity, next_turn, read_transcript
from harness.points import Point, Side
from harness.server import Dropped, Exchange, Reply, Server

#: Seconds after which a socket whose callers are all dead must have nothing left to read.
DRAIN_LIMIT_S = 5.0
_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class Recorder:
    """Appends events to one trial's history, in the order in which they are seen."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._events: list[Event] = []

    def add(self, kind: str, leg: int | None = None, /, **facts: Any) -> None:
        """Append an event that happened now. Facts that are None were not measured and are left out."""
        known = {name: value for name, value in facts.items() if value is not None}
        self._events.append(Event(time.monotonic() - self._began, leg, kind, known))

    def history(self) -> History:
        """Return what was seen so far."""
        return History(tuple(self._events))


@dataclass
class Hold:
    """A request that stands at a point of a fault."""

    point: Point
    connection: TransportSocket
    gone: asyncio.Event
    released: asyncio.Event = field(default_factory=asyncio.Event)
    drop: bool = False

    def release(self, *, drop: bool = False) -> None:
        """Let the request go on; with `drop` close its connection without an answer instead."""
        self.drop = drop
        self.released.set()


class Strike:
    """A fault of a leg and the requests it holds.

    Attributes:
        some: set when a request is held.
        ready: set when the fault may strike: all its points are held. For a batch, whoever carries the fault
            out sets it, since a framework may never make the rest of the calls.
    """

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.holds: list[Hold] = []
        self.some = asyncio.Event()
        self.ready = asyncio.Event()
        self._counts = dict.fromkeys((*fault.points, *fault.needs), 0)
        self._needed = set(fault.needs)

    @property
    def complete(self) -> bool:
        """Whether all points are held and all that is needed has been answered."""
        return len(self.holds) == len(self.fault.points) and not self._needed

    @property
    def needs_met(self) -> bool:
        """Whether all that is needed has been answered."""
        return not self._needed

    def answered(self, kind: str, name: str, arguments: dict[str, object]) -> None:
        """Note that a request was answered."""
        self._needed -= {point for point in self._needed if point.counts(kind, name, arguments)}

    def reached(self, kind: str, name: str, arguments: dict[str, object]) -> tuple[Point, ...]:
        """Count an arrival and return those of the fault's points that it stands at."""
        found = []
        for point in self.fault.points:
            if point.counts(kind, name, arguments):
                self._counts[point] += 1
                if self._counts[point] == point.n:
                    found.append(point)
        return tuple(found)

    def hold(self, hold: Hold) -> None:
        """Add a held request."""
        self.holds.append(hold)
        self.some.set()
        if self.complete and not self.fault.batch:
            self.ready.set()


@dataclass
class _Arrival:
    """A request and the points of faults that it stands at."""

    exchange: Exchange
    points: list[tuple[Strike, Point]] = field(default_factory=list)


def _text(text: str, status: int = 200) -> Reply:
    return Reply(status, text.encode())


def _json(value: object, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value).encode(), "application/json")


class LegWorld:
    """What one leg of a trial can reach, and the faults that wait for it there."""

    def __init__(self, trial: TrialWorld, index: int, faults: tuple[Fault, ...], directory: Path) -> None:
        self.index = index
        self.strikes = tuple(Strike(fault) for fault in faults)
        self.path = directory / f"{secrets.token_hex(6)}.sock"
        self.open = True
        self._trial = trial
        self._server = Server(self._guarded)
        self._counts: dict[str, int] = {}
        self._listener: asyncio.Server | None = None
        self._turn = 0
        self._last_request = ""
        self._last_answered = True
        self._results_seen: set[str] = set()
        #: Set once the history says that the leg has started: a warm leg may call before its launch is known here.
        self.begun = asyncio.Event()

    @property
    def base_url(self) -> str:
        """The value of `$OPENAI_BASE_URL` for this leg."""
        return f"{self._trial.world.model_url}/{self._trial.id}/{self.index}/v1"

    async def listen(self) -> None:
        """Begin to serve the provider's socket."""
        self._listener = await asyncio.get_running_loop().create_unix_server(self._server, str(self.path))

    async def drain(self) -> bool:
        """Wait until all that dead callers have sent is handled, then close.

        A connection of our own stands last in the accept queue; when it is answered all earlier ones have been
        accepted, and each of them has ended when no connection is left.

        Returns:
            Whether the socket was drained within `DRAIN_LIMIT_S`.
        """
        assert self._listener is not None
        try:
            async with asyncio.timeout(DRAIN_LIMIT_S):
                reader, writer = await asyncio.open_unix_connection(str(self.path))
                writer.write(b"GET /drained HTTP/1.1\r\nHost: harness\r\nConnection: close\r\n\r\n")
                await reader.read()
                writer.close()
                await self._server.finished()
                while self._server.connections:
                    await asyncio.sleep(0.001)
                await self._server.finished()
            drained = True
        except (TimeoutError, OSError):
            drained = False
        await self.close()
        return drained

    async def close(self) -> None:
        """Stop serving, whatever is still open."""
        self.open = False
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self._server.close()
            self.path.unlink(missing_ok=True)

    # --- requests ------------------------------------------------------------------------------------

    async def _guarded(self, exchange: Exchange) -> Reply:
        """Serve a request; a fault of ours must not look like a fault of the target."""
        try:
            return await self._route(exchange)
        except Dropped:
            raise
        except Exception as error:
            self._trial.recorder.add("error", self.index, reason=f"the world raised {error!r}")
            return _text(repr(error), 500)

    async def _route(self, exchange: Exchange) -> Reply:
        _, _, rest = exchange.path.partition("/")
        what, _, name = rest.partition("/")
        if what == "drained":
            return Reply()
        await self.begun.wait()
        if exchange.method != "POST":
            return _text("every request to the provider is a POST", 405)
        pid = kernel.peer_pid(exchange.connection)
        arrival = _Arrival(exchange)
        try:
            facts = json.loads(exchange.body or b"{}")
        except ValueError:
            facts = None
        if not isinstance(facts, dict):
            return _text("the body must be a JSON object", 400)
        record = self._trial.recorder.add
        if what == "effects" and name:
            return await self._effect(arrival, name, facts, pid)
        if what == "calls" and name:
            return await self._call(arrival, name, facts, pid)
        if what == "store" and name:
            return await self._store(arrival, name, facts, pid)
        if what == "paused":
            record("paused", self.index, pid=pid)
            await self._arrive_and_hold(arrival, "pause", "", {})
            return _text("noted")
        if what == "answer":
            record("answer", self.index, text=str(facts.get("text", "")), pid=pid)
            await self._arrive_and_hold(arrival, "answer", "", {})
            return _text("noted")
        if what == "hello":
            record(
                "hello", self.index, pid=pid, **{f"said_{key}": str(value) for key, value in facts.items()}
            )
            return _text("noted")
        return _text(f"the provider has no {exchange.path}", 404)

    async def _effect(self, arrival: _Arrival, name: str, arguments: dict[str, Any], pid: int) -> Reply:
        key = arrival.exchange.headers.get("idempotency-key") or None
        kind = None if key is None else "call-id" if key in self._trial.minted else "other"
        n = self._arrived(arrival, "effect", name, arguments, pid=pid, key=key, key_kind=kind)
        await self._hold(arrival, "before")
        self._trial.recorder.add(
            "recorded", self.index, name=name, arguments=arguments, key=key, key_kind=kind
        )
        await self._hold(arrival, "after")
        reply = self._trial.result(name, arguments, "done")
        self._answered("effect", name, arguments, n)
        return _text(reply)

    async def _call(self, arrival: _Arrival, tool: str, arguments: dict[str, Any], pid: int) -> Reply:
        n = self._arrived(arrival, "call", tool, arguments, pid=pid)
        await self._hold(arrival, "before")
        try:
            value = self._trial.tool_value(tool, arguments)
        except ValueError as error:
            return _text(str(error), 400)
        await self._hold(arrival, "after")
        self._answered("call", tool, arguments, n)
        return _text(self._trial.result(tool, arguments, value))

    async def _store(self, arrival: _Arrival, place: str, facts: dict[str, Any], pid: int) -> Reply:
        """Serve the session store: it keeps exactly what it is given, with no key and no deduplication."""
        session, _, operation = place.partition("/")
        items = self._trial.store.setdefault(session, [])
        if operation == "items":
            return _json(items)
        if operation not in ("append", "pop", "clear"):
            return _text(f"the store has no {operation!r}", 404)
        given = facts.get("items") if operation == "append" else []
        if not isinstance(given, list):
            return _text("append takes a list of items", 400)
        shown = [canonical(item) for item in given]
        n = self._arrived(arrival, "write", session, {"operation": operation, "items": shown}, pid=pid)
        await self._hold(arrival, "before")
        popped = None
        if operation == "append":
            items.extend(given)
        elif operation == "clear":
            items.clear()
        elif items:
            popped = items.pop()
        self._trial.recorder.add("stored", self.index, session=session, operation=operation, items=shown, n=n)
        await self._hold(arrival, "after")
        self._answered("write", session, {"operation": operation}, n)
        return _json(popped)

    def _answered(self, what: str, name: str, arguments: dict[str, Any], n: int) -> None:
        self._trial.recorder.add("answered", self.index, what=what, name=name, arguments=arguments, n=n)
        for strike in self.strikes:
            strike.answered(what, name, arguments)

    def _arrived(
        self, arrival: _Arrival, what: str, name: str, arguments: dict[str, Any], **facts: Any
    ) -> int:
        counter = what if what == "write" else f"{what}:{name}"  # as `Point.counts` does
        self._counts[counter] = n = self._counts.get(counter, 0) + 1
        self._trial.recorder.add(
            "arrived", self.index, what=what, name=name, arguments=arguments, n=n, **facts
        )
        self._reach(arrival, what, name, arguments)
        return n

    def _reach(self, arrival: _Arrival, kind: str, name: str, arguments: dict[str, Any]) -> None:
        for strike in self.strikes:
            arrival.points.extend((strike, point) for point in strike.reached(kind, name, arguments))

    async def _arrive_and_hold(
        self, arrival: _Arrival, kind: str, name: str, arguments: dict[str, Any]
    ) -> None:
        self._reach(arrival, kind, name, arguments)
        await self._hold(arrival, "before")

    async def _hold(self, arrival: _Arrival, side: Side) -> None:
        for strike, point in arrival.points:
            if point.side != side:
                continue
            hold = Hold(point, arrival.exchange.connection, arrival.exchange.gone)
            self._trial.recorder.add("held", self.index, point=str(point))
            strike.hold(hold)
            released = asyncio.ensure_future(hold.released.wait())
            gone = asyncio.ensure_future(hold.gone.wait())
            try:
                await asyncio.wait((released, gone), return_when=asyncio.FIRST_COMPLETED)
            finally:
                released.cancel()
                gone.cancel()
            if hold.gone.is_set() or hold.drop:
                raise Dropped

    async def model(self, exchange: Exchange, endpoint: str) -> Reply:
        """Answer a request to the model for this leg."""
        await self.begun.wait()
        arrival = _Arrival(exchange)
        raw = exchange.body
        record = self._trial.recorder.add
        if exchange.method != "POST" or endpoint != "chat/completions":
            return _text(f"the model has no {endpoint}", 404)
        digest = hashlib.sha256(raw).hexdigest()
        retry = exchange.headers.get("x-stainless-retry-count", "0") != "0" or (
            digest == self._last_request and not self._last_answered
        )
        if not retry:
            self._turn += 1
        self._last_request, self._last_answered = digest, False
        turn_number = self._turn
        try:
            body = json.loads(raw)
            messages = wire.chat_messages(body)
            results = read_transcript(messages, self._trial.token, self._trial.workload)
            answer_tool = wire.answer_tool(body)
        except Refused as refused:
            record("model-refused", self.index, turn=turn_number, rule=refused.rule, text=str(refused))
            self._last_answered = True
            return Reply(400, wire.refusal(refused), "application/json")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            record("model-refused", self.index, turn=turn_number, rule="not-understood", text=repr(error))
            return Reply(400, wire.refusal(Refused("not-understood", repr(error))), "application/json")
        new = [r for r in results if r.id not in self._results_seen]
        self._results_seen.update(r.id for r in new)
        record(
            "model-asked",
            self.index,
            turn=turn_number,
            retry=retry,
            streamed=bool(body.get("stream")),
            results=len(results),
            received=[[r.id, r.tool, dict(r.arguments), r.succeeded] for r in new],
        )
        if not retry:
            for strike in self.strikes:
                for point in strike.fault.points:
                    if point.kind == "model" and point.n == turn_number:
                        arrival.points.append((strike, point))
        await self._hold(arrival, "before")
        turn = next_turn(self._trial.workload, messages, self._trial.token, self._trial.mint, answer_tool)
        record(
            "model-answered",
            self.index,
            turn=turn_number,
            calls=[[call.id, call.tool, dict(call.arguments or {})] for call in turn.calls] or None,
            answer=turn.answer,
        )
        self._last_answered = True
        reply_id = f"chatcmpl-{secrets.token_hex(8)}"
        if not body.get("stream"):
            return Reply(200, wire.chat_reply(turn, reply_id), "application/json")
        with_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        return Reply(kind="text/event-stream", stream=wire.chat_stream(turn, reply_id, with_usage))


class TrialWorld:
    """What all legs of one trial share: the history, the workload, and what the provider has recorded."""

    def __init__(self, world: World, trial_id: str, workload: Workload, facts: Mapping[str, str]) -> None:
        self.world = world
        self.id = trial_id
        self.workload = workload
        self.recorder = Recorder()
        self.minted: set[str] = set()
        self.legs: list[LegWorld] = []
        self.store: dict[str, list[Any]] = {}
        self._facts = facts
        self._secret = secrets.token_bytes(16)

    def token(self, call_identity: str) -> str:
        """Return the token that the result of this call carries; nobody else can make it."""
        digest = hmac.new(self._secret, call_identity.encode(), "sha256").hexdigest()
        return f"[ok-{digest[:16]}]"

    def result(self, name: str, arguments: Mapping[str, Any], value: str) -> str:
        """Return a tool's result: byte for byte the same whenever the call is repeated."""
        shown = next((str(v) for v in arguments.values()), "")
        return f"{name} {shown} = {value} {self.token(identity(name, arguments))}"

    def tool_value(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return what a read-only tool finds.

        Raises:
            ValueError: an unknown tool, an unknown fact, or an expression that is not arithmetic.
        """
        if tool == "lookup":
            fact = str(arguments.get("fact", ""))
            if fact not in self._facts:
                raise ValueError(f"no such fact: {fact}")
            return self._facts[fact]
        if tool == "calculator":
            return _calculate(str(arguments.get("expression", "")))
        raise ValueError(f"no such tool: {tool}")

    def mint(self) -> str:
        """Return a fresh tool-call id and remember that it was minted in this trial."""
        call_id = f"call_{secrets.token_hex(12)}"
        self.minted.add(call_id)
        return call_id

    async def open_leg(self, faults: tuple[Fault, ...]) -> LegWorld:
        """Give the next leg its own address and its faults."""
        leg = LegWorld(self, len(self.legs), faults, self.world.directory)
        self.legs.append(leg)
        await leg.listen()
        return leg

    async def close(self) -> None:
        """Drain every leg's socket and write the history's last event; to be called when all is dead."""
        drained = [await leg.drain() for leg in self.legs]
        await self.world.finished(self.id)
        for session, items in self.store.items():
            shown = [canonical(item) for item in items]
            held = {text: shown.count(text) for text in dict.fromkeys(shown)}
            self.recorder.add("store", session=session, items=held)
        if all(drained):
            self.recorder.add("closed", drained=len(drained))
        else:
            self.recorder.add(
                "error", reason="a provider socket was not drained although its callers are dead"
            )
        self.world.forget(self.id)


class World:
    """The servers of a run, for any number of trials at once.

    Args:
        directory: where the provider sockets stand; a short path, since a Unix address has 107 bytes.
        host: where the model listens.
    """

    def __init__(self, directory: Path, host: str = "127.0.0.1") -> None:
        self.directory = directory
        self.diagnosis = kernel.SocketDiagnosis()
        self._host = host
        self._port = 0
        self._trials: dict[str, TrialWorld] = {}
        self._server = Server(self._model)
        self._busy: dict[str, int] = {}
        self._listener: asyncio.Server | None = None

    @property
    def model_url(self) -> str:
        """The beginning of every leg's `$OPENAI_BASE_URL`."""
        return f"http://{self._host}:{self._port}"

    async def start(self) -> None:
        """Listen for requests to the model, on a free port."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self._server, self._host, 0, family=socket.AF_INET)
        self._port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close every server."""
        for trial in tuple(self._trials.values()):
            for leg in trial.legs:
                await leg.close()
        if self._listener is not None:
            self._listener.close()
            self._server.close()
        self.diagnosis.close()

    def open_trial(self, trial_id: str, workload: Workload, facts: Mapping[str, str]) -> TrialWorld:
        """Begin a trial's history."""
        trial = TrialWorld(self, trial_id, workload, facts)
        self._trials[trial_id] = trial
        self._busy[trial_id] = 0
        return trial

    def forget(self, trial_id: str) -> None:
        """Answer no more requests for a trial."""
        self._trials.pop(trial_id, None)
        self._busy.pop(trial_id, None)

    async def finished(self, trial_id: str) -> None:
        """Return when no model request of this trial is being handled."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_LIMIT_S):
                while self._busy[trial_id]:
                    await asyncio.sleep(0.001)

    async def _model(self, exchange: Exchange) -> Reply:
        parts = exchange.path.split("/", 4)
        trial = self._trials.get(parts[1]) if len(parts) == 5 and parts[3] == "v1" else None
        if trial is None or not parts[2].isdigit() or int(parts[2]) >= len(trial.legs):
            return _text("no such trial, or it is over", 404)
        self._busy[trial.id] += 1
        try:
            return await trial.legs[int(parts[2])].model(exchange, parts[4])
        except Dropped:
            raise
        except Exception as error:
            trial.recorder.add("error", reason=f"the model's server raised {error!r}")
            return _text(repr(error), 500)
        finally:
            if trial.id in self._busy:
                self._busy[trial.id] -= 1


def _calculate(expression: str) -> str:
    """Return the value of an expression of numbers, + - * / and brackets, as text."""
    try:
        value = _value(ast.parse(expression, mode="eval").body)
    except (SyntaxError, ZeroDivisionError) as error:
        raise ValueError(f"not an expression: {expression}") from error
    return f"{value:g}" if isinstance(value, float) and not value.is_integer() else str(int(value))


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return float(_OPERATORS[type(node.op)](_value(node.left), _value(node.right)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    raise ValueError("only numbers, + - * / and brackets")
