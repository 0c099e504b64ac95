"""An agent that charges a card, as smolagents' docs write one: four tools, a model, one run.

Run as `python target.py start|resume`; plugpull ends it at the worst moment and resumes it elsewhere.
"""

import importlib.metadata
import os
import sys

import plugpull
from smolagents import OpenAIModel, ToolCallingAgent, tool


@tool
def lookup(fact: str) -> str:
    """Look up a fact by its name.

    Args:
        fact: The name of the fact.
    """
    return plugpull.call("lookup", fact=fact)


@tool
def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression.

    Args:
        expression: The expression, e.g. "2 * 3".
    """
    return plugpull.call("calculator", expression=expression)


@tool
def charge_card(order: str, amount: int) -> str:
    """Charge the card of an order.

    Args:
        order: The order.
        amount: The amount.
    """
    return plugpull.effect("charge_card", order=order, amount=amount)


@tool
def send_receipt(order: str) -> str:
    """Send the receipt of an order.

    Args:
        order: The order.
    """
    return plugpull.effect("send_receipt", order=order)


def main() -> None:
    """Run the agent; there is nothing that another process could resume."""
    plugpull.hello(framework="smolagents", version=importlib.metadata.version("smolagents"))
    if sys.argv[1] == "resume":
        sys.exit("refused: smolagents keeps an agent's memory in its process, so there is no run to resume")
    model = OpenAIModel(
        model_id="scripted", api_base=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"]
    )
    agent = ToolCallingAgent(tools=[lookup, calculator, charge_card, send_receipt], model=model)
    plugpull.answer(str(agent.run(os.environ["PLUGPULL_PROMPT"])))


if __name__ == "__main__":
    main()
