"""A model and a provider for the bench's bare runs: two small servers of the standard library, no harness.

Run as `python bench_server.py ADDRESS`; prints the port of the model, then serves until it is killed.
"""

from __future__ import annotations

import http.server
import json
import secrets
import socket
import socketserver
import sys
import threading

_CALLS = (("charge_card", {"order": "order-1", "amount": 42}), ("send_receipt", {"order": "order-1"}))


class _Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # the name that http.server calls
        """Answer with the next call, or with the answer when both calls have results."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        done = sum(message["role"] == "tool" for message in body["messages"])
        message: dict[str, object] = {"role": "assistant", "content": None if done < 2 else "paid"}
        if done < 2:
            name, arguments = _CALLS[done]
            function = {"name": name, "arguments": json.dumps(arguments)}
            message["tool_calls"] = [
                {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": function}
            ]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if done < 2 else "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reply = {"id": "bare", "object": "chat.completion", "created": 0, "model": "scripted", "usage": usage}
        self._send(json.dumps({**reply, "choices": [choice]}).encode(), "application/json")

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


class _Provider(_Model):
    def do_POST(self) -> None:  # the name that http.server calls
        """Answer every tool alike."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self._send(b"done", "text/plain")

    def address_string(self) -> str:
        """Return a name: a Unix socket's client has no address."""
        return "local"


class _UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        """Return a connection with an address of the shape that the handler expects."""
        connection, _ = super().get_request()
        return connection, ("local", 0)


if __name__ == "__main__":
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=_UnixServer(sys.argv[1], _Provider).serve_forever, daemon=True).start()
    print(model.server_address[1], flush=True)
    model.serve_forever()
