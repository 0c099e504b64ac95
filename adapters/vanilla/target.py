"""An agent that charges a card, written without a framework: a loop and a transcript in a file.

Run as `python target.py start|resume`; plugpull ends it at the worst moment and resumes it elsewhere.
"""

import importlib.metadata
import json
import os
import sys
from pathlib import Path
from typing import Any

import plugpull
from openai import OpenAI

FILE = Path(os.environ["PLUGPULL_WORKDIR"], "transcript.json")


def tool(name: str, description: str, **parameters: str) -> dict[str, Any]:
    """Describe a tool to the model."""
    properties = {parameter: {"type": kind} for parameter, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    tool("lookup", "Look up a fact by its name.", fact="string"),
    tool("calculator", "Evaluate an arithmetic expression.", expression="string"),
    tool("charge_card", "Charge the card of an order.", order="string", amount="integer"),
    tool("send_receipt", "Send the receipt of an order.", order="string"),
]


def load_transcript() -> list[dict[str, Any]]:
    """Return the saved messages."""
    messages: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return messages


def save_transcript(messages: list[dict[str, Any]]) -> None:
    """Save the messages; the file is replaced in one step (`os.replace`)."""
    new = FILE.with_suffix(".new")
    new.write_text(json.dumps(messages, indent=1), encoding="utf-8")
    new.replace(FILE)


def decision_on(call_id: str) -> str | None:
    """Return the decision about a call, or None while it waits for a person."""
    if os.environ.get("PLUGPULL_APPROVAL") != "required":
        return "approve"
    file = FILE.with_name(f"{call_id}.approval")
    if not file.exists():
        file.write_text("pending", encoding="utf-8")
    text = file.read_text(encoding="utf-8")
    return None if text == "pending" else text


def decide(decision: str) -> None:
    """Save a person's decision about the call that waits for it."""
    for file in FILE.parent.glob("*.approval"):
        if file.read_text(encoding="utf-8") == "pending":
            new = file.with_suffix(".new")
            new.write_text(decision, encoding="utf-8")
            new.replace(file)
            return
    sys.exit("refused: nothing waits for a decision")


def run_tool(call_id: str, name: str, arguments: dict[str, Any]) -> str | None:
    """Run a tool and return its result, or None if it waits for a person."""
    if name in ("lookup", "calculator"):
        return str(plugpull.call(name, **arguments))
    if name == "charge_card":
        decision = decision_on(call_id)
        if decision is None:
            return None
        if decision != "approve":
            return f"The charge for order {arguments['order']} was denied."
    return str(plugpull.effect(name, key=call_id, **arguments))


def pending_calls(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the calls of the last assistant message that have no result yet."""
    answered = {message.get("tool_call_id") for message in messages}
    last: dict[str, Any] = next((m for m in reversed(messages) if m["role"] == "assistant"), {})
    return [call for call in last.get("tool_calls") or [] if call["id"] not in answered]


def run(messages: list[dict[str, Any]]) -> str | None:
    """Work until the model answers, saving after every message; None if a call waits for a person."""
    client = OpenAI()
    while True:
        for call in pending_calls(messages):
            name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
            result = run_tool(call["id"], name, arguments)
            if result is None:
                return None
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            save_transcript(messages)
        if messages[-1]["role"] == "assistant":
            return str(messages[-1]["content"])
        reply = client.chat.completions.create(model="scripted", messages=messages, tools=TOOLS)
        messages.append(reply.choices[0].message.model_dump(exclude_none=True))
        save_transcript(messages)


def main() -> None:
    """Ask the user's question in the session, or resume it from the saved transcript."""
    plugpull.hello(framework="openai", version=importlib.metadata.version("openai"))
    if sys.argv[1] == "start":
        messages = load_transcript() if FILE.exists() else []
        messages.append({"role": "user", "content": os.environ["PLUGPULL_PROMPT"]})
        save_transcript(messages)
        answer = run(messages)
    else:
        if decision := os.environ.get("PLUGPULL_DECISION"):
            decide(decision)
        answer = run(load_transcript())

    if answer is None:
        plugpull.paused()
    else:
        plugpull.answer(answer)


if __name__ == "__main__":
    main()
