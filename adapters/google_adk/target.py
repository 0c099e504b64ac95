"""An agent that charges a card, written as Google ADK's docs teach.

Run as `python target.py start|resume`; plugpull ends it at the worst moment and resumes it elsewhere.
"""

import asyncio
import importlib.metadata
import json
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import openai
import plugpull
from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.events import Event
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

APP, USER, SESSION = "shop", "customer", "order-42"
CONFIRMATION = "adk_request_confirmation"


class ChatCompletions(BaseLlm):
    """Any model behind an OpenAI-compatible endpoint: ADK's own way there, LiteLLM, is heavy."""

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: ARG002 - the signature is ADK's
    ) -> AsyncGenerator[LlmResponse, None]:
        """Send the contents as messages and return the reply as content."""
        async with openai.AsyncOpenAI() as client:
            reply = await client.chat.completions.create(
                model=self.model,
                messages=[message for content in llm_request.contents for message in to_messages(content)],
                tools=[to_tool(tool) for tools in llm_request.config.tools or [] for tool in declared(tools)],
            )
        message = reply.choices[0].message
        parts = [types.Part(text=message.content)] if message.content else []
        for call in message.tool_calls or []:
            arguments = json.loads(call.function.arguments)
            made = types.FunctionCall(id=call.id, name=call.function.name, args=arguments)
            parts.append(types.Part(function_call=made))
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def declared(tool: Any) -> list[types.FunctionDeclaration]:
    """Return the functions of a tool of the request."""
    return list(tool.function_declarations or [])


def to_tool(function: types.FunctionDeclaration) -> Any:
    """Describe a function to the model. Names are enough: the model is told what each does by its description."""
    return {"type": "function", "function": {"name": function.name, "description": function.description}}


def to_messages(content: types.Content) -> list[Any]:
    """Return a content's parts as chat messages, in their order; calls and results keep their ids."""
    parts = content.parts or []
    results = [p.function_response for p in parts if p.function_response]
    messages: list[Any] = [
        {"role": "tool", "tool_call_id": r.id, "content": json.dumps(r.response)} for r in results
    ]
    calls = [p.function_call for p in parts if p.function_call]
    text = "".join(p.text for p in parts if p.text)
    if content.role == "model":
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [
                {
                    "id": c.id,
                    "type": "function",
                    "function": {"name": c.name, "arguments": json.dumps(c.args)},
                }
                for c in calls
            ]
        messages.append(message)
    elif text:
        messages.append({"role": "user", "content": text})
    return messages


def lookup(fact: str) -> str:
    """Look up a fact by its name."""
    return plugpull.call("lookup", fact=fact)


def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression."""
    return plugpull.call("calculator", expression=expression)


def charge_card(order: str, amount: int, tool_context: ToolContext) -> str:
    """Charge the card of an order."""
    return plugpull.effect("charge_card", key=tool_context.function_call_id, order=order, amount=amount)


def send_receipt(order: str, tool_context: ToolContext) -> str:
    """Send the receipt of an order."""
    return plugpull.effect("send_receipt", key=tool_context.function_call_id, order=order)


def make_app(resumable: bool) -> App:
    """Return the app; with resumability, ADK logs which steps have completed."""
    approval = os.environ.get("PLUGPULL_APPROVAL") == "required"
    charge = FunctionTool(charge_card, require_confirmation=approval)
    agent = LlmAgent(
        name="cashier",
        model=ChatCompletions(model="scripted"),
        tools=[lookup, calculator, charge, send_receipt],
    )
    if resumable:
        return App(name=APP, root_agent=agent, resumability_config=ResumabilityConfig(is_resumable=True))
    return App(name=APP, root_agent=agent)


def confirmation_asked(events: list[Event]) -> str | None:
    """Return the id of the last request for a confirmation."""
    calls = [call for event in events for call in event.get_function_calls() if call.name == CONFIRMATION]
    return calls[-1].id if calls else None


async def run() -> list[Event]:
    """Start the run, or resume it as the docs say, and return the session's events."""
    resumable = os.environ["PLUGPULL_MODE"] == "resumable"
    sessions = SqliteSessionService(str(Path(os.environ["PLUGPULL_WORKDIR"], "sessions.sqlite")))
    runner = Runner(app=make_app(resumable), session_service=sessions)
    where = {"app_name": APP, "user_id": USER, "session_id": SESSION}
    session = await sessions.get_session(**where)
    if session is None:
        if sys.argv[1] == "resume":
            sys.exit("refused: there is no such session")
        session = await sessions.create_session(**where)

    decision = os.environ.get("PLUGPULL_DECISION")
    arguments: dict[str, Any] = {}
    if sys.argv[1] == "start":
        arguments["new_message"] = types.UserContent(os.environ["PLUGPULL_PROMPT"])
    elif decision:
        confirmed = {"confirmed": decision == "approve"}
        answer = types.FunctionResponse(
            id=confirmation_asked(session.events), name=CONFIRMATION, response=confirmed
        )
        arguments["new_message"] = types.Content(role="user", parts=[types.Part(function_response=answer)])
    elif not resumable:
        arguments["new_message"] = types.UserContent("Please continue.")
    if sys.argv[1] == "resume" and resumable:
        if not session.events:
            sys.exit("refused: the session has no invocation")
        arguments["invocation_id"] = session.events[-1].invocation_id

    async for _ in runner.run_async(user_id=USER, session_id=SESSION, **arguments):
        pass
    session = await sessions.get_session(**where)
    assert session is not None
    return session.events


def final_response(events: list[Event]) -> str | None:
    """Return the text that answers the last message of the user, or None."""
    for event in reversed(events):
        if event.author == "user":
            return None
        text = "".join(p.text for p in (event.content.parts or []) if p.text) if event.content else ""
        if event.is_final_response() and text:
            return text
    return None


def main() -> None:
    """Run, then hand in the answer, or say that the run waits for a person."""
    plugpull.hello(framework="google-adk", version=importlib.metadata.version("google-adk"))
    events = asyncio.run(run())
    answer = final_response(events)
    if answer is not None:
        plugpull.answer(answer)
    elif any(call.name == CONFIRMATION for event in events[-3:] for call in event.get_function_calls()):
        plugpull.paused()


if __name__ == "__main__":
    main()
