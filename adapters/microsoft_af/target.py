"""An agent that charges a card, written the ways that Microsoft Agent Framework's docs teach.

Run as `python target.py start|resume`; plugpull ends it at the worst moment and resumes it elsewhere.
"""

import asyncio
import importlib.metadata
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import plugpull
from agent_framework import (
    Agent,
    AgentSession,
    Content,
    Executor,
    FileCheckpointStorage,
    FileHistoryProvider,
    FunctionInvocationContext,
    HistoryProvider,
    Message,
    RunContext,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
    response_handler,
    step,
    tool,
    workflow,
)
from agent_framework.openai import OpenAIChatCompletionClient

NAME = "order-42"
PROMPT = os.environ["PLUGPULL_PROMPT"]
FOLDER = Path(os.environ["PLUGPULL_WORKDIR"])
DECISION = os.environ.get("PLUGPULL_DECISION")
GATE = "always_require" if os.environ.get("PLUGPULL_APPROVAL") == "required" else "never_require"


@tool(approval_mode="never_require")
def lookup(fact: str) -> str:
    """Look up a fact by its name."""
    return plugpull.call("lookup", fact=fact)


@tool(approval_mode="never_require")
def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression."""
    return plugpull.call("calculator", expression=expression)


@tool(approval_mode=GATE)
def charge_card(order: str, amount: int, ctx: FunctionInvocationContext) -> str:
    """Charge the card of an order."""
    return plugpull.effect("charge_card", key=ctx.kwargs["call_id"], order=order, amount=amount)


@tool(approval_mode="never_require")
def send_receipt(order: str, ctx: FunctionInvocationContext) -> str:
    """Send the receipt of an order."""
    return plugpull.effect("send_receipt", key=ctx.kwargs["call_id"], order=order)


TOOLS = {each.name: each for each in (lookup, calculator, charge_card, send_receipt)}


# An agent: it calls its tools by itself


async def pass_call_id(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
    """Give the tool the id of its call, which function middleware finds in the metadata (since 1.3)."""
    context.kwargs["call_id"] = context.metadata.get("call_id")
    await call_next()


def make_agent(**options: Any) -> Agent:
    """The agent of a session, or of a workflow's step."""
    client = OpenAIChatCompletionClient(model="scripted")
    return Agent(client, name="cashier", tools=list(TOOLS.values()), middleware=[pass_call_id], **options)


# Steps of a workflow: it asks the model and calls the tools one step at a time


async def ask_model(messages: list[Message]) -> Message:
    """Ask the model for one turn and leave its calls alone."""
    client = OpenAIChatCompletionClient(model="scripted")
    client.function_invocation_configuration["enabled"] = False
    response = await client.get_response(messages, options={"tools": list(TOOLS.values())})
    return response.messages[-1]


def calls_of(message: Message) -> list[Content]:
    """Return the tool calls of a message."""
    return [content for content in message.contents if content.type == "function_call"]


def is_gated(call: Content) -> bool:
    """Return whether a person must approve a call."""
    return TOOLS[call.name].approval_mode == "always_require"


def approval_of(call: Content) -> Content:
    """Return the request for a person's approval of a call."""
    return Content.from_function_approval_request(id=call.call_id, function_call=call)


async def run_tool(call: Content, approved: bool = True) -> Content:
    """Run a call, unless a person denied it, and return its result."""
    if not approved:
        return Content.from_function_result(call.call_id, result="The call was denied.")
    function, arguments = TOOLS[call.name], call.parse_arguments()
    context = FunctionInvocationContext(function, arguments, kwargs={"call_id": call.call_id})
    result = await function.invoke(arguments=arguments, context=context)
    return Content.from_function_result(call.call_id, result=result)


@executor(id="model")
async def model(messages: list[Message], ctx: WorkflowContext[list[Message], str]) -> None:
    """The graph's model step."""
    reply = await ask_model(messages)
    if calls_of(reply):
        await ctx.send_message([*messages, reply])
    else:
        await ctx.yield_output(reply.text)


class Tools(Executor):
    """The graph's tool step: it runs the calls of one turn; a gated call waits for a person."""

    @handler
    async def run_calls(self, messages: list[Message], ctx: WorkflowContext[list[Message]]) -> None:
        """Run the calls that need no approval and ask for that of the others."""
        calls = calls_of(messages[-1])
        results = await asyncio.gather(*(run_tool(call) for call in calls if not is_gated(call)))
        ctx.set_state("turn", (messages, results))
        for call in calls:
            if is_gated(call):
                await ctx.request_info(approval_of(call), Content)
        await self.hand_on(ctx)

    @response_handler
    async def decided(self, request: Content, response: Content, ctx: WorkflowContext[list[Message]]) -> None:
        """Go on with a call that a person has decided."""
        messages, results = ctx.get_state("turn")
        result = await run_tool(request.function_call, response.approved)
        ctx.set_state("turn", (messages, [*results, result]))
        await self.hand_on(ctx)

    async def hand_on(self, ctx: WorkflowContext[list[Message]]) -> None:
        """Let the model go on once every call has a result."""
        messages, results = ctx.get_state("turn")
        if len(results) == len(calls_of(messages[-1])):
            await ctx.send_message([*messages, Message("tool", results)])


def graph_style() -> tuple[Any, Any]:
    """A graph: a model step and a tool step in a loop."""
    tools = Tools(id="tools")
    builder = WorkflowBuilder(name=NAME, start_executor=model).add_edge(model, tools).add_edge(tools, model)
    return builder.build(), [Message("user", [PROMPT])]


@executor(id="intake")
async def intake(prompt: str, ctx: WorkflowContext[list[Message]]) -> None:
    """The step before the agent: it makes a message of the user's words."""
    await ctx.send_message([Message("user", [prompt])])


def agent_style() -> tuple[Any, Any]:
    """A graph with an agent as a step."""
    return WorkflowBuilder(name=NAME, start_executor=intake).add_edge(intake, make_agent()).build(), PROMPT


model_step = step(ask_model, name="model")
tool_step = step(run_tool, name="tool")


@workflow(name=NAME)
async def order_flow(prompt: str, ctx: RunContext) -> str:
    """The functional API: a loop in which each turn of the model and each tool call is a step."""
    messages = [Message("user", [prompt])]
    while calls := calls_of(reply := await model_step(messages)):
        results = []
        for call in calls:
            approved = True
            if is_gated(call):
                response = await ctx.request_info(approval_of(call), Content, request_id=call.call_id)
                approved = response.approved
            results.append(await tool_step(call, approved))
        messages = [*messages, reply, Message("tool", results)]
    return reply.text


def functional_style() -> tuple[Any, Any]:
    """A function; in later versions it is a definition from which a workflow is built."""
    return order_flow.build() if hasattr(order_flow, "build") else order_flow, PROMPT


STYLES = {"graph": graph_style, "agent-in-workflow": agent_style, "functional": functional_style}


def decided(pending: dict[str, Any]) -> dict[str, Content]:
    """Return the person's decision about each request that waits in a checkpoint."""
    if not pending:
        sys.exit("refused: nothing waits for a decision")
    return {k: v.data.to_function_approval_response(DECISION == "approve") for k, v in pending.items()}


async def run_workflow(style: str) -> None:
    """Start the workflow, or resume it from its latest checkpoint: with the decision if there is one."""
    storage = FileCheckpointStorage(FOLDER / "checkpoints")
    flow, message = STYLES[style]()
    if sys.argv[1] == "start":
        result = await flow.run(message, checkpoint_storage=storage)
    else:
        cp = await storage.get_latest(workflow_name=NAME)
        if cp is None:
            sys.exit("refused: there is no checkpoint")
        responses = decided(cp.pending_request_info_events) if DECISION else None
        result = await flow.run(
            checkpoint_id=cp.checkpoint_id, checkpoint_storage=storage, responses=responses
        )

    if result.get_request_info_events():
        plugpull.paused()
    elif outputs := result.get_outputs():
        plugpull.answer(outputs[-1] if style != "agent-in-workflow" else outputs[-1].text)


# An agent with a session


class StoreHistoryProvider(HistoryProvider):
    """History in a database of one's own: these two methods are all that a provider needs."""

    async def get_messages(self, session_id: str | None, **_: Any) -> list[Message]:
        """Return the messages of a session."""
        return [Message.from_dict(item) for item in plugpull.stored(session_id)]

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], **_: Any) -> None:
        """Append messages to a session."""
        plugpull.store(session_id, [message.to_dict() for message in messages])


async def run_session(per_call: bool) -> None:
    """Run the agent in its session: with the user's words, or with the decision if there is one."""
    in_store = os.environ.get("PLUGPULL_STORE") == "provider"
    history = StoreHistoryProvider("store") if in_store else FileHistoryProvider(FOLDER / "history")
    agent = make_agent(context_providers=[history], require_per_service_call_history_persistence=per_call)

    file = FOLDER / "session.json"
    saved = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    session = AgentSession.from_dict(saved["session"]) if saved else AgentSession(session_id=NAME)
    words: Any = PROMPT
    if DECISION:
        requests = [Content.from_dict(request) for request in saved.get("requests", [])]
        if not requests:
            sys.exit("refused: nothing waits for a decision")
        words = Message("user", [r.to_function_approval_response(DECISION == "approve") for r in requests])
    response = await agent.run(words, session=session)

    pending = [request.to_dict() for request in response.user_input_requests]
    file.write_text(json.dumps({"session": session.to_dict(), "requests": pending}), encoding="utf-8")
    if pending:
        plugpull.paused()
    else:
        plugpull.answer(response.text)


def main() -> None:
    """Run the mode that is asked for."""
    package = "agent-framework-core"
    plugpull.hello(framework=package, version=importlib.metadata.version(package))
    mode = os.environ["PLUGPULL_MODE"]
    asyncio.run(run_workflow(mode) if mode in STYLES else run_session(mode == "session-per-call"))


if __name__ == "__main__":
    main()
