"""An agent that charges a card, made durable in the ways that Pydantic AI's docs teach.

Run as `python target.py start|resume`; plugpull ends it at the worst moment and resumes it elsewhere.
"""

import asyncio
import importlib.metadata
import json
import os
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import plugpull
from pydantic import TypeAdapter
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ToolCallPart

try:
    from pydantic_ai.models.openai import OpenAIChatModel
except ImportError:  # before 1.0 it had this name
    from pydantic_ai.models.openai import OpenAIModel as OpenAIChatModel

MODE = os.environ["PLUGPULL_MODE"]
WORKDIR = Path(os.environ["PLUGPULL_WORKDIR"])
RUN = os.environ.get("PLUGPULL_TRIAL", "order-42")
DECISION = os.environ.get("PLUGPULL_DECISION")
#: Whether charges wait for a person. Tools have `requires_approval` since 1.0.
APPROVAL = os.environ.get("PLUGPULL_APPROVAL") == "required"
if APPROVAL:
    from pydantic_ai import DeferredToolRequests, DeferredToolResults

#: What is handed in when the run has been saved and waits for a person.
PAUSED = object()


def lookup(fact: str) -> str:
    """Look up a fact by its name."""
    return plugpull.call("lookup", fact=fact)


def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression."""
    return plugpull.call("calculator", expression=expression)


def charge_card(ctx: RunContext, order: str, amount: int) -> str:
    """Charge the card of an order."""
    return plugpull.effect("charge_card", key=ctx.tool_call_id, order=order, amount=amount)


def send_receipt(ctx: RunContext, order: str) -> str:
    """Send the receipt of an order."""
    return plugpull.effect("send_receipt", key=ctx.tool_call_id, order=order)


def make_agent(step: Callable[[Any], Any] = lambda function: function, **options: Any) -> Agent[None, Any]:
    """Return the agent; `step` decorates its tool functions."""
    tools = [Tool(step(function)) for function in (lookup, calculator, send_receipt)]
    tools.append(Tool(step(charge_card), **{"requires_approval": True} if APPROVAL else {}))
    return Agent(OpenAIChatModel("scripted"), name="billing", tools=tools, **options)


def stopping_agent(**options: Any) -> Agent[None, Any]:
    """Return the agent whose run ends, with the requests as its output, when a person has to decide."""
    return make_agent(output_type=[str, DeferredToolRequests] if APPROVAL else str, **options)


def outcome(output: Any) -> Any:
    """Return what a run's output means."""
    return PAUSED if APPROVAL and isinstance(output, DeferredToolRequests) else output


def decided(history: Sequence[ModelMessage]) -> dict[str, Any]:
    """Return the person's decision about the calls that the history ends with, as arguments of a run."""
    if DECISION is None:
        return {}
    waiting = [part for part in history[-1].parts if isinstance(part, ToolCallPart)]
    approvals = {call.tool_call_id: DECISION == "approve" for call in waiting}
    return {"deferred_tool_results": DeferredToolResults(approvals=approvals)}


# The message history, in a file of one JSON list a line


def load_history() -> list[ModelMessage]:
    """Return the messages of the session."""
    file = WORKDIR / "messages.jsonl"
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [message for line in lines for message in ModelMessagesTypeAdapter.validate_json(line)]


async def history_at_end(prompt: str | None) -> Any:
    """Load the history, run, and append the new messages once the run has finished."""
    history = load_history()
    result = await stopping_agent().run(prompt, message_history=history, **decided(history))
    with (WORKDIR / "messages.jsonl").open("ab") as file:
        file.write(result.new_messages_json() + b"\n")
    return outcome(result.output)


async def history_each_step(prompt: str | None) -> Any:
    """Save the whole history before each step of the run."""
    history = load_history()
    async with stopping_agent().iter(prompt, message_history=history, **decided(history)) as run:
        async for node in run:
            messages = list(run.ctx.state.message_history)
            if Agent.is_model_request_node(node):
                messages.append(node.request)  # it enters the history when it is sent
            new = WORKDIR / "messages.new"
            new.write_bytes(ModelMessagesTypeAdapter.dump_json(messages) + b"\n")
            new.replace(WORKDIR / "messages.jsonl")
    assert run.result is not None
    return outcome(run.result.output)


async def conversation_store(prompt: str | None) -> Any:
    """Load the conversation from a store, run, and save the result, as `ConversationStore` says."""
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )

    entries, records = TypeAdapter(ConversationEntry), TypeAdapter(ConversationRecord)
    file = WORKDIR / "conversation.jsonl"

    class Store(ConversationStore):
        """An append-only list of entries and records: the provider's, or a file."""

        def items(self) -> list[Any]:
            if os.environ.get("PLUGPULL_STORE") == "provider":
                return list(plugpull.stored(RUN))
            return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

        async def read_record(self, conversation_id: str) -> ConversationRecord | None:
            found = await self.read_records()
            return next((r for r in found if r.conversation_id == conversation_id), None)

        async def read_records(
            self, *, scope: str | None = None, limit: int | None = None
        ) -> list[ConversationRecord]:
            found = [records.validate_python(item) for item in self.items() if "revision" in item]
            newest = {r.conversation_id: r for r in found if scope in (None, r.scope)}
            return list(newest.values())[::-1][:limit]

        async def write_record(
            self,
            record: ConversationRecord,
            *,
            new_entries: Sequence[ConversationEntry] = (),
            expected_revision: str | None,
        ) -> None:
            stored = await self.read_record(record.conversation_id)
            if (stored.revision if stored else None) != expected_revision:
                raise ConversationConflict(record.conversation_id)
            new = [entries.dump_python(entry, mode="json") for entry in new_entries]
            new.append(records.dump_python(record, mode="json"))
            if os.environ.get("PLUGPULL_STORE") == "provider":
                plugpull.store(RUN, new)
            else:
                with file.open("a") as lines:
                    lines.write("".join(json.dumps(item) + "\n" for item in new))

        async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
            raise NotImplementedError

        async def read_entry(self, entry_id: str) -> ConversationEntry:
            return entries.validate_python(next(i for i in self.items() if i.get("id") == entry_id))

    store = Store()
    conversation = await store.load(RUN) or Conversation(conversation_id=RUN)
    results = {}
    if DECISION:
        requests = conversation.deferred_tool_requests or DeferredToolRequests()
        approvals = {call.tool_call_id: DECISION == "approve" for call in requests.approvals}
        results["deferred_tool_results"] = requests.build_results(approvals=approvals)
    result = await stopping_agent().run(prompt, conversation=conversation, **results)
    await store.save(result)
    return outcome(result.output)


async def step_persistence(prompt: str | None) -> Any:
    """Let the harness's `StepPersistence` save snapshots; continue from the newest that it offers."""
    from pydantic_ai_harness.step_persistence import SqliteStepStore, StepPersistence, continue_run

    store = SqliteStepStore(database=str(WORKDIR / "steps.sqlite"))
    frontier = {"capture_frontier": True} if MODE == "step-persistence-frontier" else {}
    agent = stopping_agent(capabilities=[StepPersistence(store=store, agent_name="billing", **frontier)])

    history: list[ModelMessage] = []
    runs = await store.list_runs(conversation_id=RUN)
    if prompt is None:
        interrupted = bool(frontier or DECISION)
        history = await continue_run(store, run_id=runs[-1].run_id, include_interrupted=interrupted)
        prompt = None if interrupted else "continue"
    elif runs:
        history = await continue_run(store, run_id=runs[-1].run_id)
    result = await agent.run(prompt, message_history=history, conversation_id=RUN, **decided(history))
    return outcome(result.output)


# Durable execution: a workflow for each question of the session


def question(prompt: str | None) -> int:
    """Return the number of a question in the session; without a prompt, the number of the last one."""
    file = WORKDIR / "questions.json"
    asked = json.loads(file.read_text()) if file.exists() else []
    if prompt is not None and prompt not in asked:
        asked.append(prompt)
        file.write_text(json.dumps(asked))
    return len(asked) - 1 if prompt is None else asked.index(prompt)


async def dbos(prompt: str | None) -> Any:
    """Run the agent in a DBOS workflow; launching DBOS again recovers it."""
    from dbos import DBOS, SetWorkflowID

    async def ask_a_person(ctx: RunContext, requests: Any) -> Any:  # noqa: ARG001 - the handler's signature
        await DBOS.set_event_async("waiting", True)
        decision = await DBOS.recv_async("decision", timeout_seconds=timedelta(days=7).total_seconds())
        await DBOS.set_event_async("waiting", False)
        approvals = {call.tool_call_id: decision == "approve" for call in requests.approvals}
        return requests.build_results(approvals=approvals)

    DBOS(config={"name": "billing", "system_database_url": f"sqlite:///{WORKDIR}/dbos.sqlite"})
    capabilities: list[Any] = []
    if APPROVAL:
        from pydantic_ai.capabilities import HandleDeferredToolCalls

        capabilities.append(HandleDeferredToolCalls(handler=ask_a_person))
    step = DBOS.step() if MODE == "dbos-steps" else lambda function: function
    try:
        from pydantic_ai.durable_exec.dbos import DBOSDurability
    except ImportError:  # in 1.x a wrapper makes every run a workflow
        from pydantic_ai.durable_exec.dbos import DBOSAgent

        answer: Any = DBOSAgent(make_agent(step, capabilities=capabilities)).run
    else:
        agent = make_agent(step, capabilities=[*capabilities, DBOSDurability()])

        @DBOS.workflow()
        async def answer(prompt: str, message_history: list[ModelMessage]) -> Any:
            return await agent.run(prompt, message_history=message_history)

    DBOS.launch()
    number = question(prompt)
    workflow_id = f"{RUN}-{number}"
    if prompt is not None:
        history: list[ModelMessage] = []
        if number:
            before = await DBOS.retrieve_workflow_async(f"{RUN}-{number - 1}")
            history = (await before.get_result()).all_messages()
        with SetWorkflowID(workflow_id):
            running = asyncio.create_task(answer(prompt, message_history=history))
    else:
        handle = await DBOS.retrieve_workflow_async(workflow_id)
        running = asyncio.create_task(handle.get_result())
    if DECISION:
        await DBOS.send_async(workflow_id, DECISION, topic="decision")
    elif APPROVAL and await DBOS.get_event_async(workflow_id, "waiting"):
        return PAUSED
    return (await running).output


MODES = {
    "history-at-end": history_at_end,
    "history-each-step": history_each_step,
    "conversation-store": conversation_store,
    "step-persistence": step_persistence,
    "step-persistence-frontier": step_persistence,
    "dbos": dbos,
    "dbos-steps": dbos,
}


async def main() -> None:
    """Start the run, or resume it without a prompt."""
    plugpull.hello(framework="pydantic-ai-slim", version=importlib.metadata.version("pydantic-ai-slim"))
    prompt = os.environ["PLUGPULL_PROMPT"] if sys.argv[1] == "start" else None
    answer = await MODES[MODE](prompt)
    if answer is PAUSED:
        plugpull.paused()
    else:
        plugpull.answer(answer)


if __name__ == "__main__":
    asyncio.run(main())
