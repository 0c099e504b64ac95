"""An agent that charges a card, made durable in the ways that Pydantic AI's docs teach.

Run as `python target.py start|resume`; plugpull ends it at the worst moment and resumes it elsewhere.
"""

import asyncio
import importlib.metadata
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import plugpull
from pydantic import TypeAdapter
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ToolCallPart

try:
    from pydantic_ai.models.openai import OpenAIChatModel
except ImportError:  # its name up to 0.7
    from pydantic_ai.models.openai import OpenAIModel as OpenAIChatModel

MODE = os.environ["PLUGPULL_MODE"]
WORKDIR = Path(os.environ["PLUGPULL_WORKDIR"])
SESSION = os.environ.get("PLUGPULL_TRIAL", "order-42")
APPROVAL = os.environ.get("PLUGPULL_APPROVAL") == "required"
DECISION = os.environ.get("PLUGPULL_DECISION")
PAUSED = object()
"""Stands for an answer: the run is saved and waits for a person."""

if APPROVAL:
    from pydantic_ai import DeferredToolRequests, DeferredToolResults
    from pydantic_ai.capabilities import HandleDeferredToolCalls


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
    """Return the agent; `step` decorates the functions of its tools."""
    tools = [Tool(step(function)) for function in (lookup, calculator, send_receipt)]
    tools.append(Tool(step(charge_card), **{"requires_approval": True} if APPROVAL else {}))
    return Agent(OpenAIChatModel("scripted"), name="billing", tools=tools, **options)


# Approvals: a run ends with requests and a new run takes the results, or a handler waits inside of the run


def stopping_agent(**options: Any) -> Agent[None, Any]:
    """Return the agent whose run ends with the requests as its output when a person has to decide."""
    return make_agent(output_type=[str, DeferredToolRequests] if APPROVAL else str, **options)


def outcome(output: Any) -> Any:
    """Return what the output of such a run means."""
    return PAUSED if APPROVAL and isinstance(output, DeferredToolRequests) else output


def approvals(calls: Sequence[ToolCallPart], decision: str | None) -> dict[str, bool]:
    """Return the person's decision about each call."""
    return {call.tool_call_id: decision == "approve" for call in calls}


def decided(history: Sequence[ModelMessage]) -> dict[str, Any]:
    """Return the decision about the calls that the history ends with, as arguments of a run."""
    if DECISION is None:
        return {}
    calls = [part for part in history[-1].parts if isinstance(part, ToolCallPart)]
    return {"deferred_tool_results": DeferredToolResults(approvals=approvals(calls, DECISION))}


def asking(handler: Callable[..., Any]) -> list[Any]:
    """Return the capability by which a handler waits for the decision."""
    return [HandleDeferredToolCalls(handler=handler)] if APPROVAL else []


# Message history


def load_history() -> list[ModelMessage]:
    """Return the messages of the session, saved as JSON lists, one a line."""
    file = WORKDIR / "messages.jsonl"
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [message for line in lines for message in ModelMessagesTypeAdapter.validate_json(line)]


async def history_at_end(prompt: str | None) -> Any:
    """Load the history, run, and write back the new messages once the run has finished."""
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
    return outcome(run.result.output)


async def step_persistence(prompt: str | None) -> Any:
    """Let `StepPersistence` save snapshots of the run; continue from the newest that it offers."""
    from pydantic_ai_harness.step_persistence import SqliteStepStore, StepPersistence, continue_run

    store = SqliteStepStore(database=str(WORKDIR / "steps.sqlite"))
    frontier = MODE == "step-persistence-frontier"
    options = {"capture_frontier": True} if frontier else {}
    agent = stopping_agent(capabilities=[StepPersistence(store=store, agent_name="billing", **options)])

    history: list[ModelMessage] = []
    if runs := await store.list_runs(conversation_id=SESSION):
        interrupted = frontier and prompt is None
        history = await continue_run(store, run_id=runs[-1].run_id, include_interrupted=interrupted)
        if prompt is None and not frontier:
            prompt = "Continue."
    result = await agent.run(prompt, message_history=history, conversation_id=SESSION, **decided(history))
    return outcome(result.output)


# A store of conversations

if MODE == "conversation-store":
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.conversation_store import ConversationConflict, ConversationEntry, ConversationRecord
    from pydantic_ai.conversation_store import ConversationStore as AbstractStore

    ENTRIES, RECORDS = TypeAdapter(ConversationEntry), TypeAdapter(ConversationRecord)

    class ConversationStore(AbstractStore):
        """A list to which entries and records are appended: the provider's, or a file."""

        file = WORKDIR / "conversation.jsonl"
        remote = os.environ.get("PLUGPULL_STORE") == "provider"

        def items(self) -> list[dict[str, Any]]:
            """Return everything that was appended."""
            if self.remote:
                return list(plugpull.stored(SESSION))
            return [json.loads(line) for line in self.file.open()] if self.file.exists() else []

        async def read_record(self, conversation_id: str) -> Any:
            """Return the newest record of a conversation."""
            found = [i for i in self.items() if "revision" in i and i["conversation_id"] == conversation_id]
            return RECORDS.validate_python(found[-1]) if found else None

        async def read_entry(self, entry_id: str) -> Any:
            """Return an entry."""
            return ENTRIES.validate_python(next(i for i in self.items() if i.get("id") == entry_id))

        async def write_record(
            self, record: Any, *, new_entries: Sequence[Any] = (), expected_revision: str | None
        ) -> None:
            """Append the new entries and the record in one write, unless the conversation has changed."""
            stored = await self.read_record(record.conversation_id)
            if (stored.revision if stored else None) != expected_revision:
                raise ConversationConflict(record.conversation_id)
            new = [ENTRIES.dump_python(entry, mode="json") for entry in new_entries]
            new.append(RECORDS.dump_python(record, mode="json"))
            if self.remote:
                plugpull.store(SESSION, new)
            else:
                with self.file.open("a") as file:
                    file.writelines(json.dumps(item) + "\n" for item in new)

        async def read_records(self, **_: Any) -> Any:
            """Not needed here."""
            raise NotImplementedError

        async def delete_record(self, *_: Any, **__: Any) -> None:
            """Not needed here."""
            raise NotImplementedError


async def conversation_store(prompt: str | None) -> Any:
    """Load the conversation, run, and save the result."""
    store = ConversationStore()
    conversation = await store.load(SESSION) or Conversation(conversation_id=SESSION)
    results: dict[str, Any] = {}
    if DECISION:
        requests = conversation.deferred_tool_requests or DeferredToolRequests()
        results["deferred_tool_results"] = requests.build_results(
            approvals=approvals(requests.approvals, DECISION)
        )
    result = await stopping_agent().run(prompt, conversation=conversation, **results)
    await store.save(result)
    return outcome(result.output)


# Durable execution: a workflow for each question of the session


def question(prompt: str | None) -> int:
    """Return the number of a question in the session, the last one's if there is no prompt."""
    file = WORKDIR / "questions.json"
    asked = json.loads(file.read_text()) if file.exists() else []
    if prompt is not None and prompt not in asked:
        asked.append(prompt)
        file.write_text(json.dumps(asked))
    return len(asked) - 1 if prompt is None else asked.index(prompt)


async def dbos(prompt: str | None) -> Any:
    """Run the agent in a DBOS workflow; launching DBOS again recovers it."""
    from dbos import DBOS, SetWorkflowID

    async def wait_for_decision(_: RunContext, requests: Any) -> Any:
        await DBOS.set_event_async("waiting", True)
        decision = await DBOS.recv_async("decision", timeout_seconds=timedelta(days=7).total_seconds())
        await DBOS.set_event_async("waiting", False)
        return requests.build_results(approvals=approvals(requests.approvals, decision))

    DBOS(config={"name": "billing", "system_database_url": f"sqlite:///{WORKDIR}/dbos.sqlite"})
    step = DBOS.step() if MODE == "dbos-steps" else lambda function: function
    try:
        from pydantic_ai.durable_exec.dbos import DBOSDurability
    except ImportError:  # in 1.x a wrapper makes each of its runs a workflow
        from pydantic_ai.durable_exec.dbos import DBOSAgent

        answer: Any = DBOSAgent(make_agent(step, capabilities=asking(wait_for_decision))).run
    else:
        agent = make_agent(step, capabilities=[*asking(wait_for_decision), DBOSDurability()])

        @DBOS.workflow()
        async def answer(prompt: str, message_history: list[ModelMessage]) -> Any:
            return await agent.run(prompt, message_history=message_history)

    DBOS.launch()
    number = question(prompt)
    workflow_id = f"{SESSION}-{number}"
    if prompt is None:
        handle = await DBOS.retrieve_workflow_async(workflow_id)
        running = asyncio.create_task(handle.get_result())
    else:
        history: list[ModelMessage] = []
        if number:
            before = await DBOS.retrieve_workflow_async(f"{SESSION}-{number - 1}")
            history = (await before.get_result()).all_messages()
        with SetWorkflowID(workflow_id):
            running = asyncio.create_task(answer(prompt, message_history=history))
    if DECISION:
        await DBOS.send_async(workflow_id, DECISION, topic="decision")
    elif APPROVAL and await DBOS.get_event_async(workflow_id, "waiting"):
        return PAUSED
    return (await running).output


if MODE == "temporal":
    from pydantic_ai.durable_exec import temporal as durable
    from temporalio import workflow
    from temporalio.client import Client
    from temporalio.worker import Worker
    from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

    async def wait_for_decision(_: RunContext, requests: Any) -> Any:
        """Let the workflow wait until a person has decided."""
        billing = workflow.instance()
        billing.waiting = True
        await workflow.wait_condition(lambda: billing.decision is not None)
        billing.waiting = False
        return requests.build_results(approvals=approvals(requests.approvals, billing.decision))

    ACTIVITY = {"start_to_close_timeout": timedelta(seconds=8)}
    if hasattr(durable, "TemporalDurability"):
        durability = durable.TemporalDurability(activity_config=ACTIVITY)
        agent: Any = make_agent(capabilities=[*asking(wait_for_decision), durability])
    else:  # in 1.x a wrapper
        agent = durable.TemporalAgent(
            make_agent(capabilities=asking(wait_for_decision)), activity_config=ACTIVITY
        )

    @dataclass
    class Turn:
        """What a workflow returns: its answer, and the messages of the session."""

        answer: str
        messages: list[ModelMessage]

    @workflow.defn
    class Billing(durable.PydanticAIWorkflow):
        """A question of the session."""

        __pydantic_ai_agents__ = (agent,)
        waiting = False
        decision: str | None = None

        @workflow.run
        async def run(self, prompt: str, history: list[ModelMessage]) -> Turn:
            """Run the agent."""
            result = await agent.run(prompt, message_history=history)
            return Turn(result.output, result.all_messages())

        @workflow.signal
        def decide(self, decision: str) -> None:
            """Take the person's decision."""
            self.decision = decision

        @workflow.update
        async def waits(self) -> bool:
            """Return whether the run waits for a person, once it has come that far."""
            await workflow.wait_condition(lambda: self.waiting or self.decision is not None)
            return self.waiting


async def temporal(prompt: str | None) -> Any:
    """Run the agent in a Temporal workflow, with a worker in this process."""
    client = await Client.connect(os.environ["PLUGPULL_ENGINE"], plugins=[durable.PydanticAIPlugin()])
    # used in activities only, so the sandbox of workflows may pass them through; 1.x does not know httpx2 itself
    restrictions = SandboxRestrictions.default.with_passthrough_modules("plugpull", "httpx2")
    runner = SandboxedWorkflowRunner(restrictions=restrictions)
    async with Worker(client, task_queue=SESSION, workflows=[Billing], workflow_runner=runner):
        number = question(prompt)
        handle = client.get_workflow_handle_for(Billing.run, f"{SESSION}-{number}")
        if prompt is not None:
            history: list[ModelMessage] = []
            if number:
                before = client.get_workflow_handle_for(Billing.run, f"{SESSION}-{number - 1}")
                history = (await before.result()).messages
            await client.start_workflow(Billing.run, args=[prompt, history], id=handle.id, task_queue=SESSION)
        if DECISION:
            await handle.signal(Billing.decide, DECISION)
        elif APPROVAL and await handle.execute_update(Billing.waits):
            return PAUSED
        return (await handle.result()).answer


async def not_durable(prompt: str | None) -> Any:
    """Run the agent and save nothing, to measure what durability costs."""
    return (await make_agent().run(prompt)).output


MODES = {
    "history-at-end": history_at_end,
    "history-each-step": history_each_step,
    "step-persistence": step_persistence,
    "step-persistence-frontier": step_persistence,
    "conversation-store": conversation_store,
    "dbos": dbos,
    "dbos-steps": dbos,
    "temporal": temporal,
}


async def main() -> None:
    """Start the run, or resume it without a prompt."""
    plugpull.hello(framework="pydantic-ai-slim", version=importlib.metadata.version("pydantic-ai-slim"))
    prompt = os.environ["PLUGPULL_PROMPT"] if sys.argv[1] == "start" else None
    mode = not_durable if os.environ.get("PLUGPULL_DURABILITY") == "off" else MODES[MODE]
    answer = await mode(prompt)
    if answer is PAUSED:
        plugpull.paused()
    else:
        plugpull.answer(answer)


if __name__ == "__main__":
    asyncio.run(main())
