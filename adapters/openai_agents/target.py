"""An agent that charges a card, run the ways that the docs of the OpenAI Agents SDK and of DBOS teach.

Run as `python target.py start|resume`; plugpull ends it at the worst moment and resumes it elsewhere.
"""

import asyncio
import importlib.metadata
import os
import sys
import zlib
from pathlib import Path
from typing import Any

import plugpull
from agents import (
    Agent,
    Runner,
    RunState,
    SQLiteSession,
    function_tool,
    set_default_openai_api,
    set_tracing_disabled,
)
from agents.memory import SessionABC
from agents.tool_context import ToolContext
from dbos import DBOS, DBOSConfig, SetWorkflowID
from dbos_openai_agents import DBOSRunner

WORKDIR = Path(os.environ["PLUGPULL_WORKDIR"])
MODE = os.environ["PLUGPULL_MODE"]
PROMPT = os.environ["PLUGPULL_PROMPT"]
DECISION = os.environ.get("PLUGPULL_DECISION")
APPROVAL = os.environ.get("PLUGPULL_APPROVAL") == "required"
STATE = WORKDIR / "state.json"


def step(function: Any) -> Any:
    """Make a tool a step of the workflow, where the mode says so."""
    return DBOS.step()(function) if MODE == "dbos-steps" else function


async def call(tool: str, **arguments: Any) -> str:
    """Ask a tool that only reads, in a thread: the event loop goes on."""
    return await asyncio.to_thread(plugpull.call, tool, **arguments)


async def effect(name: str, key: str, **arguments: Any) -> str:
    """Do something to the outside world, in a thread: the event loop goes on."""
    return await asyncio.to_thread(plugpull.effect, name, key=key, **arguments)


@function_tool
@step
async def lookup(fact: str) -> str:
    """Look up a fact by its name."""
    return await call("lookup", fact=fact)


@function_tool
@step
async def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression."""
    return await call("calculator", expression=expression)


@function_tool(needs_approval=APPROVAL)
@step
async def charge_card(context: ToolContext[Any], order: str, amount: int) -> str:
    """Charge the card of an order."""
    return await effect("charge_card", context.tool_call_id, order=order, amount=amount)


@function_tool
@step
async def send_receipt(context: ToolContext[Any], order: str) -> str:
    """Send the receipt of an order."""
    return await effect("send_receipt", context.tool_call_id, order=order)


agent = Agent(
    name="Cashier",
    instructions="Do what the user asks, with the tools.",
    model="scripted",
    tools=[lookup, calculator, charge_card, send_receipt],
)


class ProviderSession(SessionABC):
    """A session on another machine."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the newest items, or all."""
        items: list[Any] = plugpull.stored(self.session_id)
        return items if limit is None else items[max(0, len(items) - limit) :]

    async def add_items(self, items: list[Any]) -> None:
        """Append items."""
        plugpull.store(self.session_id, items)

    async def pop_item(self) -> Any:
        """Remove the newest item and return it."""
        return plugpull.unstore(self.session_id)

    async def clear_session(self) -> None:
        """Remove every item."""
        plugpull.clear(self.session_id)


def decide(state: RunState[Any], decision: str | None) -> RunState[Any]:
    """Tell a waiting run what the person has decided."""
    for interruption in state.get_interruptions():
        if decision == "approve":
            state.approve(interruption)
        elif decision == "deny":
            state.reject(interruption)
    return state


async def run_turn_by_turn(run_input: Any, session: SessionABC | None, staged: str | None) -> Any:
    """Stop after each turn, save the run, go on from there; `staged` is input that comes at the first stop.

    A turn that failed is saved too: what the SDK knows of it is in the state that it is retried from.
    """
    while True:
        result = Runner.run_streamed(agent, run_input, session=session)
        try:
            async for _ in result.stream_events():
                result.cancel(mode="after_turn")
        finally:
            state = result.to_state()
            STATE.write_text(state.to_string(), encoding="utf-8")
        if result.interruptions or result.final_output is not None:
            return result
        if staged:
            state.add_input(staged)
            STATE.write_text(state.to_string(), encoding="utf-8")
            staged = None
        run_input = state


async def run_plain(starts: bool) -> str | None:
    """Start the run or resume it with what is saved; return the answer, or None if it waits for a person."""
    session: SessionABC | None = None
    if os.environ.get("PLUGPULL_STORE") == "provider":
        session = ProviderSession("order-42")
    elif MODE == "session":
        session = SQLiteSession("order-42", WORKDIR / "session.sqlite")

    run_input: Any = PROMPT
    if not starts and (MODE != "session" or STATE.exists()):
        if not STATE.exists():
            sys.exit("refused: the run was never saved")
        state = await RunState.from_string(agent, STATE.read_text(encoding="utf-8"))
        run_input = decide(state, DECISION)

    if MODE == "turns":
        staged = os.environ.get("PLUGPULL_STAGED_INPUT") if starts else None
        result = await run_turn_by_turn(run_input, session, staged)
    else:
        result = await Runner.run(agent, run_input, session=session)
        if result.interruptions:
            STATE.write_text(result.to_state().to_string(), encoding="utf-8")
    return None if result.interruptions else str(result.final_output)


@DBOS.workflow()
async def run_agent(prompt: str) -> str:
    """Run the agent as a workflow; where a call needs approval, wait for a message with the decision."""
    result = await DBOSRunner.run(agent, prompt)
    while result.interruptions:
        await DBOS.set_event_async("waits", True)
        decision = await DBOS.recv_async(timeout_seconds=86400)
        result = await DBOSRunner.run(agent, decide(result.to_state(), decision))
    return str(result.final_output)


async def run_workflow(starts: bool) -> str | None:
    """Start the workflow or wait for the one that DBOS recovers; return the answer, or None if it waits."""
    config: DBOSConfig = {
        "name": "cashier",
        "system_database_url": f"sqlite:///{WORKDIR / 'dbos.sqlite'}",
        "application_version": "1",
        "executor_id": "cashier-1",
    }
    DBOS(config=config)
    DBOS.launch()  # recovers what was running
    workflow_id = f"order-42-{zlib.crc32(PROMPT.encode())}"  # another question is another workflow
    if starts:
        with SetWorkflowID(workflow_id):
            handle = await DBOS.start_workflow_async(run_agent, PROMPT)
        if APPROVAL and await DBOS.get_event_async(workflow_id, "waits"):
            return None
    else:
        handle = await DBOS.retrieve_workflow_async(workflow_id)
        if DECISION:
            await DBOS.send_async(workflow_id, DECISION)
    return await handle.get_result()


async def main() -> None:
    """Start or resume the run, in the way of the mode."""
    plugpull.hello(framework="openai-agents", version=importlib.metadata.version("openai-agents"))
    set_default_openai_api("chat_completions")
    set_tracing_disabled(True)
    run = run_workflow if MODE.startswith("dbos") else run_plain
    answer = await run(sys.argv[1] == "start")
    if answer is None:
        plugpull.paused()
    else:
        plugpull.answer(answer)


if __name__ == "__main__":
    asyncio.run(main())
