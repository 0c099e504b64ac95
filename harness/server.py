"""An HTTP/1.1 server on asyncio and h11, with one promise: a request that has fully arrived is handled.

Whatever becomes of its caller: a charge sent by a process that dies at once is a charge. Servers that start a
handler some steps later, or cancel it with its connection, lose it. It knows no path and no trial.
"""

from __future__ import annotations

import asyncio
from asyncio.trsock import TransportSocket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

import h11


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: a whole body, or a stream of parts."""

    status: int = 200
    body: bytes = b""
    kind: str = "text/plain; charset=utf-8"
    stream: Iterable[bytes] | None = None


class Dropped(Exception):
    """The connection is to be closed without an answer, or its caller is gone already."""


@dataclass
class Exchange:
    """A request that has fully arrived.

    Attributes:
        method, path, headers, body: the request; names of headers are in lower case.
        connection: the socket, for the kernel's facts about its other end.
        gone: set when the connection closes before the answer.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: TransportSocket
    gone: asyncio.Event = field(default_factory=asyncio.Event)


Handler = Callable[[Exchange], Awaitable[Reply]]


class Server:
    """A listener's connections and the exchanges that are being handled."""

    def __init__(self, handler: Handler) -> None:
        self.connections: set[_Connection] = set()
        self._handler = handler
        self._running: set[asyncio.Task[None]] = set()

    def __call__(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        return _Connection(self)

    async def finished(self) -> None:
        """Return when no request is being handled."""
        while self._running:
            await asyncio.wait(set(self._running))

    def close(self) -> None:
        """Close every connection, and give up whatever is being handled."""
        for connection in tuple(self.connections):
            connection.abort()
        for task in tuple(self._running):
            task.cancel()

    def handle(self, exchange: Exchange, connection: _Connection) -> None:
        """Begin to handle an exchange."""
        task = asyncio.ensure_future(self._answer(exchange, connection))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _answer(self, exchange: Exchange, connection: _Connection) -> None:
        try:
            reply = await self._handler(exchange)
        except Dropped:
            connection.abort()
        else:
            connection.reply(reply)


class _Connection(asyncio.Protocol):
    """One connection: requests one after the other."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._http = h11.Connection(h11.SERVER)
        self._request: h11.Request | None = None
        self._body = bytearray()
        self._exchange: Exchange | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._http.receive_data(data)
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc  # a reset and an orderly end are the same to whoever waits
        self._server.connections.discard(self)
        if self._exchange is not None:
            self._exchange.gone.set()

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    def reply(self, reply: Reply) -> None:
        """Send an answer, unless the connection is closed."""
        self._exchange = None
        if self._transport.is_closing():
            return
        headers = [("Content-Type", reply.kind)]
        if reply.stream is None:
            headers.append(("Content-Length", str(len(reply.body))))
        self._send(h11.Response(status_code=reply.status, headers=headers))
        for part in (reply.body,) if reply.stream is None else reply.stream:
            if part:
                self._send(h11.Data(data=part))
        self._send(h11.EndOfMessage())
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            self._advance()
        else:
            self._transport.close()

    def _send(self, event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
        self._transport.write(self._http.send(event) or b"")

    def _advance(self) -> None:
        try:
            while True:
                event = self._http.next_event()
                if isinstance(event, h11.Request):
                    self._request = event
                    self._body.clear()
                elif isinstance(event, h11.Data):
                    self._body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    self._begin()
                else:  # more data is needed, an answer comes first, or the connection is over
                    break
        except h11.RemoteProtocolError:
            self._transport.abort()

    def _begin(self) -> None:
        assert self._request is not None
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self._request.headers}
        path = self._request.target.decode("latin-1").partition("?")[0]
        connection = self._transport.get_extra_info("socket")
        self._exchange = Exchange(
            self._request.method.decode("latin-1"), path, headers, bytes(self._body), connection
        )
        self._server.handle(self._exchange, self)
