"""The ways in which `make mutants` breaks plugpull: one wrong line each. Data only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Break:
    """A mutant: in `file`, `old` becomes `new`; `old` stands there exactly once."""

    name: str
    file: str
    old: str
    new: str


BREAKS = (
    Break(
        "drop the kill",
        "harness/trial.py",
        "        kernel.send_group(leg.group, signal.SIGKILL)\n        self._struck(leg, strike.fault, int(signal.SIGKILL)",
        "        self._struck(leg, strike.fault, int(signal.SIGKILL)",
    ),
    Break(
        "kill the leader only, not its group",
        "harness/kernel.py",
        "        os.killpg(group, signum)",
        "        os.kill(group, signum)",
    ),
    Break(
        "count an effect twice",
        "arena/checkers.py",
        "        if key is None or key not in records:\n            records.append(key)",
        "        if key is None or key not in records:\n            records.extend((key, key))",
    ),
    Break(
        "count half of the effects",
        "arena/checkers.py",
        '    for event in history.of("recorded"):\n        key = event.facts.get("key") if trial.keyed else None',
        '    for event in history.of("recorded")[::2]:\n        key = event.facts.get("key") if trial.keyed else None',
    ),
    Break(
        "record a held effect before its point",
        "harness/world.py",
        "            if point.side != side:\n                continue",
        '            if side != "after" or point.kind == "model":\n                continue',
    ),
    Break(
        "answer before the fault",
        "harness/world.py",
        "                await asyncio.wait((released, gone), return_when=asyncio.FIRST_COMPLETED)",
        "                await asyncio.sleep(0)",
    ),
    Break(
        "skip the barrier",
        "harness/trial.py",
        "timeout=BARRIER_LIMIT_S, return_when",
        "timeout=0, return_when",
    ),
    Break(
        "forget the group check",
        "harness/trial.py",
        "bool(found) and all(member.group == leg.group for member in found)",
        "bool(found)",
    ),
    Break(
        "forget how the killed process ended",
        "harness/trial.py",
        "ended is not None and ended.killed_by_sigkill",
        "True",
    ),
    Break(
        "accept exit 0 without an answer",
        "arena/checkers.py",
        'end["status"] == 0 and bool(history.of("answer", leg=end.leg))',
        'end["status"] == 0',
    ),
    Break(
        "reuse a tool-call id",
        "harness/world.py",
        'call_id = f"call_{secrets.token_hex(12)}"',
        'call_id = f"call_{self.id}"',
    ),
    Break(
        "let an extra user message reset progress",
        "harness/model.py",
        "    done = {identity(r.tool, r.arguments) for r in reading.received if r.succeeded}",
        '    extra = [m.role for m in messages].count("user") > 1\n    done = {identity(r.tool, r.arguments) for r in reading.received if r.succeeded and not extra}',
    ),
    Break(
        "believe a result without the token",
        "harness/model.py",
        "succeeded = token_of(name) in message.text",
        "succeeded = bool(message.text)",
    ),
    Break(
        "accept a call without a result",
        "harness/model.py",
        "        if open_calls:\n            raise _missing(open_calls)\n        for call in message.calls:",
        "        for call in message.calls:",
    ),
    Break(
        "close the history early",
        "harness/trial.py",
        "        await self._end_what_is_left(leg, GRACE_S if by_itself else 0.0)",
        "        await self._end_what_is_left(leg, 0.0)",
    ),
    Break(
        "do not drain the sockets",
        "harness/world.py",
        "                await reader.read()\n                writer.close()\n                await self._server.finished()\n                while self._server.connections:\n                    await asyncio.sleep(0.001)",
        "                writer.close()",
    ),
    Break(
        "swap two legs' sockets",
        "harness/world.py",
        "        leg = LegWorld(self, len(self.legs), faults, self.world.directory)",
        "        leg = LegWorld(self, (1, 0, 2, 3)[len(self.legs) % 4], faults, self.world.directory)",
    ),
    Break(
        "strike without waiting for rest",
        "harness/trial.py",
        '        if fault.timing == "once":\n            return None, None',
        '        if fault.timing == "once":\n            return None, None\n        if leg.group:\n            return True, 0.0',
    ),
    Break(
        "do not look for processes that left the leg",
        "harness/trial.py",
        "kernel.mark_of(line.pid) == self._mark",
        "kernel.mark_of(line.pid) == 0",
    ),
    Break(
        "give start and resume one hash seed",
        "harness/launch.py",
        'seed = "1" if word == "start" else "2"',
        'seed = "1"',
    ),
    Break(
        "believe the version that the target says",
        "arena/checkers.py",
        "said is not None and hello.leg in versions and said != versions[hello.leg]",
        "said is None",
    ),
    Break(
        "a resume that meets its limit is fine",
        "arena/checkers.py",
        '    if any(event["which"] == "leg" for event in history.of("limit")):\n        return frozenset(("hung",))\n    ends',
        "    ends",
    ),
    Break(
        "one passing trial is enough",
        "arena/verdicts.py",
        "worst([row[0] for row in good])",
        '("PASS" if any(row[0] == "PASS" for row in good) else "FAIL")',
    ),
    Break(
        "a checker that raises passes",
        "arena/checkers.py",
        '        return Outcome("ERROR", reason=f"a checker raised {type(raised).__name__}: {raised}")',
        '        return Outcome("PASS", reason=str(raised))',
    ),
)
