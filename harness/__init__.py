"""How a target is asked: processes, the world around them, faults, and the history of what was seen.

The harness knows no framework and no scenario: it runs a `TrialPlan` and returns a `History`.
"""
