"""A PostgreSQL server for a run, from the wheel `pgserver`: a Unix socket only, and the tables made once.

Run by plugpull, outside the processes that it kills; every trial has a thread of its own in it.
"""

import json
import os
import sys

import pgserver
from langgraph.checkpoint.postgres import PostgresSaver

server = pgserver.get_server(os.environ["PLUGPULL_ENGINE_DIR"], cleanup_mode="stop")
with PostgresSaver.from_conn_string(server.get_uri()) as checkpointer:
    checkpointer.setup()
print(json.dumps({"address": server.get_uri()}), flush=True)
sys.stdin.read()
server.cleanup()
