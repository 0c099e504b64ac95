"""The arena's words: verdicts and anomalies, with what each says. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

Verdict = Literal["PASS", "FAIL", "ERROR", "UNSUPPORTED"]
Anomaly = Literal[
    "duplicated",
    "lost",
    "run-lost",
    "replayed",
    "asked-again",
    "approval-forgotten",
    "unapproved",
    "poisoned",
    "crashed",
    "hung",
    "unfinished",
    "wrong-answer",
]
ANOMALIES: tuple[Anomaly, ...] = get_args(Anomaly)

MEANING: Mapping[Anomaly, str] = {
    "duplicated": "an effect happened more than once",
    "lost": "an effect never happened",
    "run-lost": "an accepted run cannot be resumed: the resume failed before it asked for anything",
    "replayed": "a call that had finished ran again",
    "asked-again": "the model was asked anew and made an unfinished call again, under a new id",
    "approval-forgotten": "a saved decision, or the question for it, is gone",
    "unapproved": "an effect happened before or against the decision",
    "poisoned": "the transcript was refused by the model's API",
    "crashed": "a resume ended with an error",
    "hung": "a resume met its limit",
    "unfinished": "a resume ended well without an answer",
    "wrong-answer": "the answer is not the right one",
}
