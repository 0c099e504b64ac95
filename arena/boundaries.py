"""Boundaries: every place of an unharmed run where something crosses between the agent and its world. Pure."""

from __future__ import annotations

from harness.history import History


def boundaries(history: History) -> tuple[str, ...]:
    """Return the points of an unharmed run's first leg, in their order: complete by construction.

    Each request of the agent is a boundary: a model's turn, a call or an effect before and after it is recorded,
    a pause, the answer. Between two of them nothing of the agent can be seen from outside.
    """
    points: list[str] = []
    counts = {"paused": 0, "answer": 0}
    for event in history:
        if event.leg != 0:
            continue
        if event.kind == "model-asked" and not event["retry"]:
            points.append(f"model#{event['turn']}")
        elif event.kind == "arrived":
            what = event["what"]
            place = f"{what}#{event['n']}" if what == "write" else f"{what}:{event['name']}#{event['n']}"
            points.extend((f"{place}.before", f"{place}.after"))
        elif event.kind in counts:
            counts[event.kind] += 1
            points.append(f"{'pause' if event.kind == 'paused' else 'answer'}#{counts[event.kind]}")
    return tuple(points)
