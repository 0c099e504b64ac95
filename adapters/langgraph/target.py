"""An agent that charges a card, written the three ways that LangGraph's docs teach.

Run as `python target.py start|resume`; plugpull ends it at the worst moment and resumes it elsewhere.
"""

import importlib.metadata
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import plugpull
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt

try:  # since LangGraph 1.0 the prebuilt agent lives in LangChain
    from langchain.agents import create_agent
except ImportError:
    from langgraph.prebuilt import create_react_agent as create_agent


@tool
def lookup(fact: str) -> str:
    """Look up a fact by its name."""
    return plugpull.call("lookup", fact=fact)


@tool
def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression."""
    return plugpull.call("calculator", expression=expression)


@tool
def charge_card(order: str, amount: int, tool_call_id: Annotated[str, InjectedToolCallId]) -> str:
    """Charge the card of an order."""
    if os.environ.get("PLUGPULL_APPROVAL") == "required":
        decision = interrupt({"action": "charge_card", "order": order, "amount": amount})
        if decision != "approve":
            return f"The charge of {amount} for order {order} was denied."
    return plugpull.effect("charge_card", key=tool_call_id, order=order, amount=amount)


@tool
def send_receipt(order: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> str:
    """Send the receipt of an order."""
    return plugpull.effect("send_receipt", key=tool_call_id, order=order)


TOOLS = [lookup, calculator, charge_card, send_receipt]


def graph_style(model: ChatOpenAI, checkpointer: BaseCheckpointSaver | None) -> Any:
    """The Graph API: a model node and a tool node in a loop."""
    model_with_tools = model.bind_tools(TOOLS)

    def call_model(state: MessagesState) -> dict[str, list[BaseMessage]]:
        return {"messages": [model_with_tools.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("call_model", call_model)
    builder.add_node("tools", ToolNode(TOOLS))
    builder.add_edge(START, "call_model")
    builder.add_conditional_edges("call_model", tools_condition)
    builder.add_edge("tools", "call_model")
    return builder.compile(checkpointer=checkpointer)


def agent_style(model: ChatOpenAI, checkpointer: BaseCheckpointSaver | None) -> Any:
    """The prebuilt agent."""
    return create_agent(model, TOOLS, checkpointer=checkpointer)


def functional_style(model: ChatOpenAI, checkpointer: BaseCheckpointSaver | None) -> Any:
    """The Functional API: each model call and each tool call is a task."""
    model_with_tools = model.bind_tools(TOOLS)
    tools_by_name = {t.name: t for t in TOOLS}

    @task
    def call_model(messages: list[BaseMessage]) -> AIMessage:
        return model_with_tools.invoke(messages)

    @task
    def call_tool(tool_call: ToolCall) -> ToolMessage:
        return tools_by_name[tool_call["name"]].invoke(tool_call)

    @entrypoint(checkpointer=checkpointer)
    def agent(messages: list[BaseMessage], *, previous: list[BaseMessage] | None = None) -> Any:
        messages = add_messages(previous or [], messages)
        response = call_model(messages).result()
        while response.tool_calls:
            futures = [call_tool(tool_call) for tool_call in response.tool_calls]
            messages = add_messages(messages, [response, *(future.result() for future in futures)])
            response = call_model(messages).result()
        messages = add_messages(messages, response)
        return entrypoint.final(value={"messages": messages}, save=messages)

    return agent


STYLES = {"graph": graph_style, "agent": agent_style, "functional": functional_style}


def open_checkpointer(store: str) -> AbstractContextManager[BaseCheckpointSaver | None]:
    """Open the checkpointer: an SQLite file, or the PostgreSQL server that all trials of a run share."""
    if os.environ.get("PLUGPULL_DURABILITY") == "off":
        return nullcontext()
    if store == "postgres":
        from langgraph.checkpoint.postgres import PostgresSaver  # not every version's lock has it

        return PostgresSaver.from_conn_string(os.environ["PLUGPULL_ENGINE"])
    return SqliteSaver.from_conn_string(str(Path(os.environ["PLUGPULL_WORKDIR"], "checkpoints.sqlite")))


def main() -> None:
    """Start the run, or resume it as the docs say: with the decision if there is one, else with None."""
    plugpull.hello(framework="langgraph", version=importlib.metadata.version("langgraph"))
    style, durability, *store = os.environ["PLUGPULL_MODE"].split("-")
    thread = os.environ.get("PLUGPULL_TRIAL", "order-42")
    config: dict[str, Any] = {"configurable": {"thread_id": thread}}

    run_input: Any = None
    if sys.argv[1] == "start":
        prompt = [HumanMessage(os.environ["PLUGPULL_PROMPT"])]
        run_input = prompt if style == "functional" else {"messages": prompt}
    elif decision := os.environ.get("PLUGPULL_DECISION"):
        run_input = Command(resume=decision)

    with open_checkpointer(*store or ["sqlite"]) as checkpointer:
        graph = STYLES[style](ChatOpenAI(model="scripted"), checkpointer)
        result = graph.invoke(run_input, config, durability=durability if checkpointer else None)

    if result.get("__interrupt__"):
        plugpull.paused()
    else:
        plugpull.answer(result["messages"][-1].content)


if __name__ == "__main__":
    main()
