"""An agent that charges a card, written with Google ADK as its docs do: an App, a Runner, a session service.

Run as `python target.py start|resume`; plugpull ends it at the worst moment and resumes it elsewhere.
"""

import asyncio
import importlib.metadata
import os
import sys
from pathlib import Path
from typing import Any

import plugpull
from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.events import Event
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import ListSessionsResponse
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types
from typing_extensions import override

try:  # in older versions the OpenAI client is still in the labs
    from google.adk.integrations.openai import OpenAILlm
except ImportError:
    from google.adk.labs.openai import OpenAILlm

APP, USER, SESSION = "orders", "user-1", "order-42"
CONFIRMATION = "adk_request_confirmation"


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


class ProviderSessionService(BaseSessionService):
    """Keeps the events of a session in a store on another machine, written before the run goes on."""

    @override
    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        return Session(app_name=app_name, user_id=user_id, id=session_id or SESSION, state=state or {})

    @override
    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: Any = None
    ) -> Session | None:
        session = Session(app_name=app_name, user_id=user_id, id=session_id)
        session.events = [Event.model_validate(item) for item in plugpull.stored(session_id)]
        return session

    @override
    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        return ListSessionsResponse()

    @override
    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        plugpull.clear(session_id)

    @override
    async def append_event(self, session: Session, event: Event) -> Event:
        if not event.partial:
            plugpull.store(session.id, [event.model_dump(mode="json", exclude_none=True)])
        return await super().append_event(session, event)


def open_sessions() -> BaseSessionService:
    """Open the session service: an SQLite file, unless plugpull asks for another place."""
    if os.environ.get("PLUGPULL_STORE") == "provider":
        return ProviderSessionService()
    if os.environ.get("PLUGPULL_DURABILITY") == "off":
        return InMemorySessionService()
    return SqliteSessionService(str(Path(os.environ["PLUGPULL_WORKDIR"], "sessions.sqlite")))


def build_app(resumable: bool) -> App:
    """The agent and its tools, as an app that can be resumed or not."""
    approval = os.environ.get("PLUGPULL_APPROVAL") == "required"
    agent = LlmAgent(
        name="cashier",
        model=OpenAILlm(model="scripted"),
        instruction="Take care of the customer's order.",
        tools=[lookup, calculator, FunctionTool(charge_card, require_confirmation=approval), send_receipt],
    )
    return App(name=APP, root_agent=agent, resumability_config=ResumabilityConfig(is_resumable=resumable))


def last_confirmation(session: Session) -> tuple[types.FunctionCall, str] | None:
    """Return the last question for a confirmation and the invocation that asked it."""
    for event in reversed(session.events):
        for call in event.get_function_calls():
            if call.name == CONFIRMATION:
                return call, event.invocation_id
    return None


def is_answered(session: Session, call: types.FunctionCall) -> bool:
    """Return whether the session holds a response to a call."""
    return any(r.id == call.id for event in session.events for r in event.get_function_responses())


def message(text: str) -> types.Content:
    """A message of the user."""
    return types.Content(role="user", parts=[types.Part(text=text)])


async def run() -> None:
    """Start the run, or resume it as the docs say: with the decision if there is one."""
    resumable = os.environ["PLUGPULL_MODE"] == "resumable"
    sessions = open_sessions()
    runner = Runner(app=build_app(resumable), session_service=sessions)
    session = await sessions.get_session(app_name=APP, user_id=USER, session_id=SESSION)

    if sys.argv[1] == "start":
        if session is None:
            await sessions.create_session(app_name=APP, user_id=USER, session_id=SESSION)
        new_message = message(os.environ["PLUGPULL_PROMPT"])
        events = runner.run_async(user_id=USER, session_id=SESSION, new_message=new_message)
    elif session is None or not session.events:
        sys.exit("refused: the session has no events to resume from")
    elif decision := os.environ.get("PLUGPULL_DECISION"):
        asked = last_confirmation(session)
        if asked is None:
            sys.exit("refused: nothing waits for a confirmation")
        call, invocation_id = asked
        response = types.FunctionResponse(
            id=call.id, name=CONFIRMATION, response={"confirmed": decision == "approve"}
        )
        new_message = types.Content(role="user", parts=[types.Part(function_response=response)])
        events = runner.run_async(
            user_id=USER,
            session_id=SESSION,
            invocation_id=invocation_id if resumable else None,
            new_message=new_message,
        )
    elif resumable:
        invocation_id = session.events[-1].invocation_id
        events = runner.run_async(user_id=USER, session_id=SESSION, invocation_id=invocation_id)
    else:
        new_message = message("Please continue.")
        events = runner.run_async(user_id=USER, session_id=SESSION, new_message=new_message)

    answer = None
    async for event in events:
        if event.is_final_response() and event.content and event.content.parts:
            answer = event.content.parts[0].text

    session = await sessions.get_session(app_name=APP, user_id=USER, session_id=SESSION)
    asked = last_confirmation(session) if session else None
    if answer:
        plugpull.answer(answer)
    elif session and asked and not is_answered(session, asked[0]):
        plugpull.paused()


def main() -> None:
    """Say which framework this is, then run."""
    plugpull.hello(framework="google-adk", version=importlib.metadata.version("google-adk"))
    asyncio.run(run())


if __name__ == "__main__":
    main()
