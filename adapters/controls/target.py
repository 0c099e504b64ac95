"""Agents without a framework whose verdicts are known in advance: they test the arena itself.

`Agent` is a small durable loop: it saves the run before and after every step, and a resume runs pending calls
again under the same ids. Every control is that loop with one thing changed, which its docstring names.
"""

import fcntl
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plugpull

Json = dict[str, Any]
EFFECTS = {"charge_card": ("order", "amount"), "send_receipt": ("order",)}
READS = {"lookup": ("fact",), "calculator": ("expression",)}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": name.replace("_", " "),
            "parameters": {
                "type": "object",
                "properties": {p: {"type": "integer" if p == "amount" else "string"} for p in parameters},
                "required": list(parameters),
            },
        },
    }
    for name, parameters in {**READS, **EFFECTS}.items()
]


class Agent:
    """The durable loop. As the control `outbox` it is unchanged: each effect carries its call's id as key."""

    def __init__(self) -> None:
        self.file = Path(os.environ["PLUGPULL_WORKDIR"], "run.json")
        self.run: Json = {"messages": [], "approval": None, "notes": []}
        self.taken_up = False

    # --- the two words of the target's contract ---

    def start(self) -> None:
        """Accept a new run, or a new question in the session of a run that has ended, and work on it."""
        question = {"role": "user", "content": os.environ["PLUGPULL_PROMPT"]}
        if self.file.exists():
            self.load()
            if not self.ended() or question in self.run["messages"]:
                sys.exit("refused: this run has been started already; resume it")
        self.run["messages"].append(question)
        self.save()
        self.work()

    def resume(self) -> None:
        """Go on with the saved run. A person's decision is saved before anything is done about it."""
        if not self.file.exists():
            sys.exit("refused: there is no run to resume")
        self.load()
        decision = os.environ.get("PLUGPULL_DECISION")
        if decision is not None:
            self.decide(decision)
        self.work()

    def load(self) -> None:
        """Take up the saved run."""
        self.run = json.loads(self.file.read_text(encoding="utf-8"))
        self.taken_up = True

    def decide(self, decision: str) -> None:
        """Take a person's decision about the call that waits; the same one again, before the end, is the same."""
        approval = self.run["approval"]
        if self.ended() or approval is None or approval["decision"] not in (None, decision):
            sys.exit("refused: nothing waits for this decision")
        self.note(decision)

    def note(self, decision: str) -> None:
        """Save a decision."""
        self.run["approval"]["decision"] = decision
        self.save()

    # --- the loop ---

    def work(self) -> None:
        """Run pending calls and ask the model, in turn, until it answers; then hand in the answer."""
        messages = self.run["messages"]
        while True:
            if not self.make(self.pending()):
                plugpull.paused()
                return
            if self.ended():
                break
            messages.append(self.ask())
            self.save()
        self.finish(messages[-1]["content"])

    def ended(self) -> bool:
        """Return whether the model has answered."""
        last: Json = self.run["messages"][-1] if self.run["messages"] else {}
        return last.get("role") == "assistant" and not last.get("tool_calls")

    def pending(self) -> list[Json]:
        """Return the calls of the last assistant message that have no result yet."""
        messages = self.run["messages"]
        answered = {m["tool_call_id"] for m in messages if m["role"] == "tool"}
        last: Json = next((m for m in reversed(messages) if m["role"] == "assistant"), {})
        return [call for call in last.get("tool_calls", ()) if call["id"] not in answered]

    def make(self, calls: list[Json]) -> bool:
        """Make a batch's calls, one by one, and save each result; return False at a call that waits for a person."""
        for call in calls:
            if not self.may(call):
                return False
            self.keep(call, self.use(*read(call)))
        return True

    def keep(self, call: Json, result: str) -> None:
        """Save the result of a call."""
        self.run["messages"].append({"role": "tool", "tool_call_id": call["id"], "content": result})
        self.save()

    def may(self, call: Json) -> bool:
        """Return whether a call needs no decision or has one; otherwise save that it waits for a person."""
        if not needs_a_person(call):
            return True
        approval = self.run["approval"]
        if approval is None or approval["call"] != call["id"]:
            self.run["approval"] = approval = {"call": call["id"], "decision": None}
            self.save()
        return approval["decision"] is not None

    def use(self, tool: str, arguments: Json, call_id: str) -> str:
        """Run a tool and return its result."""
        approval = self.run["approval"]
        if approval is not None and approval["call"] == call_id and approval["decision"] != "approve":
            return f"{tool} was denied."
        return self.send(tool, arguments, call_id)

    def send(self, tool: str, arguments: Json, key: str | None) -> str:
        """Send a tool's request to the outside world."""
        if tool in EFFECTS:
            return str(plugpull.effect(tool, key=key, **arguments))
        return str(plugpull.call(tool, **arguments))

    def ask(self) -> Json:
        """Return the model's next message."""
        body = {"model": "scripted", "messages": self.run["messages"], "tools": TOOLS}
        request = urllib.request.Request(
            f"{os.environ['OPENAI_BASE_URL']}/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
        )
        try:
            with urllib.request.urlopen(request) as reply:
                message = json.load(reply)["choices"][0]["message"]
        except urllib.error.HTTPError as error:
            return self.refused(f"the model refused: {error.code} {error.read().decode()}")
        return {name: message[name] for name in ("role", "content", "tool_calls") if name in message}

    def refused(self, text: str) -> Json:
        """Fail, since the model's API has refused the transcript."""
        sys.exit(text)

    def finish(self, answer: str) -> None:
        """Hand in the final answer."""
        plugpull.answer(answer)

    def save(self) -> None:
        """Save the run so that a crash at any instant leaves the old state or the new one."""
        write_durably(self.file, json.dumps(self.run))


# --- controls that differ in what they save or send ---


class NoKey(Agent):
    """Sends no key, so the provider cannot know a repeated charge."""

    def send(self, tool: str, arguments: Json, _: str | None) -> str:
        """Send the request without its key."""
        return super().send(tool, arguments, None)


class LedgerFirst(Agent):
    """Notes a call as done before it makes it, and makes no call that is noted."""

    def use(self, tool: str, arguments: Json, call_id: str) -> str:
        """Make a call unless the ledger has it, whatever id it comes under."""
        note = [tool, arguments]
        if note in self.run["notes"]:
            return f"{tool} has been done already."
        self.run["notes"].append(note)
        self.save()
        return super().use(tool, arguments, call_id)


class Amnesiac(Agent):
    """Keeps nothing: a resume starts over."""

    def resume(self) -> None:
        """Start over."""
        self.start()

    def save(self) -> None:
        """Save nothing."""


class Forger(Agent):
    """Fakes the proof of a charge that it has yet to make, and takes a resume's charges as proven.

    The proof is a file, a variable of this module and a result that looks like the provider's.
    """

    charged: bool = False

    def start(self) -> None:
        """Leave the forged proof in every place, then work."""
        Forger.charged = True
        write_durably(self.file.with_name("charge_card.done"), "charge_card = done [ok-0123456789abcdef]")
        super().start()

    def use(self, tool: str, arguments: Json, call_id: str) -> str:
        """In a resume, show the forged result in place of charging."""
        proof = self.file.with_name("charge_card.done")
        if tool == "charge_card" and sys.argv[1] == "resume" and (Forger.charged or proof.exists()):
            return proof.read_text(encoding="utf-8")
        return super().use(tool, arguments, call_id)


# --- controls that differ in how a resume ends ---


class Liar(Agent):
    """Says in a resume that all is done, and does nothing."""

    def resume(self) -> None:
        """Hand in an answer."""
        plugpull.answer("All is done.")


class Hang(Agent):
    """Does all the work in a resume, hands in its answer, and never ends."""

    def finish(self, answer: str) -> None:
        """Hand in the answer and, in a resume, sleep for ever."""
        super().finish(answer)
        while sys.argv[1] == "resume":
            signal.pause()


class Late(Agent):
    """Leaves a process behind that repeats the first charge after the answer, or the run's first call."""

    def finish(self, answer: str) -> None:
        """Hand in the answer; the process that is left repeats a call a little later, under another key."""
        super().finish(answer)
        if os.fork() != 0:
            return
        os.setsid()  # out of the group and the session, as a daemon would
        time.sleep(0.3)
        try:
            tool, arguments, _ = self.first()
            self.send(tool, arguments, f"late-{uuid.uuid4()}")
        finally:
            os._exit(0)

    def first(self) -> tuple[str, Json, str]:
        """Return the run's first charge, or its first call."""
        calls = [call for m in self.run["messages"] for call in m.get("tool_calls", ())]
        charges = [call for call in calls if call["function"]["name"] == "charge_card"]
        return read((charges or calls)[0])


class Fugitive(Late):
    """Leaves a daemon behind that nothing ties to the run: executed anew, in an empty environment."""

    def finish(self, answer: str) -> None:
        """Hand in the answer; what the daemon is to do stands in its arguments."""
        plugpull.answer(answer)
        tool, arguments, _ = self.first()
        body = json.dumps(arguments)
        request = (
            f"POST /{'effects' if tool in EFFECTS else 'calls'}/{tool} HTTP/1.1\r\nHost: provider\r\n"
            f"Idempotency-Key: late-{uuid.uuid4()}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        )
        daemon = (
            "import socket, sys, time; time.sleep(0.3); s = socket.socket(socket.AF_UNIX); "
            "s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode()); s.recv(4096)"
        )
        command = [sys.executable, "-I", "-S", "-c", daemon, os.environ["PLUGPULL_PROVIDER"], request]
        apart(lambda: os.execve(sys.executable, command, {}))


class Mute(Agent):
    """Asks neither the model nor a tool."""

    def work(self) -> None:
        """Do nothing."""


# --- controls that end a taken-up run in another way ---


class Bungler(Agent):
    """Hands in a wrong answer when it has taken up a run."""

    def finish(self, answer: str) -> None:
        """Add a number that is no answer to any question."""
        super().finish(f"{answer}, or rather -1" if self.taken_up else answer)


class Quitter(Agent):
    """Does all the work of a run that it has taken up and ends well, but hands in no answer."""

    def finish(self, answer: str) -> None:
        """Hand in the answer of a new run only."""
        if not self.taken_up:
            super().finish(answer)


class Crasher(Agent):
    """Does all the work of a run that it has taken up and ends with an error in place of the answer."""

    def finish(self, answer: str) -> None:
        """Hand in the answer of a new run only."""
        if self.taken_up:
            sys.exit("crashed: the answer could not be handed in")
        super().finish(answer)


class Tidy(Agent):
    """Deletes the run before it hands in the answer: one boundary at which there is nothing to resume."""

    def finish(self, answer: str) -> None:
        """Tidy up too early."""
        self.file.unlink()
        super().finish(answer)


# --- controls that differ in when they save, or in what a start does to a run that exists ---


class LateSaver(Agent):
    """Saves nothing before the model has answered for the first time."""

    def save(self) -> None:
        """Save the run once it holds more than the user's words."""
        if len(self.run["messages"]) > 1:
            super().save()


class Restarter(Agent):
    """Starts a run over that exists already."""

    def start(self) -> None:
        """Throw away what has been saved."""
        self.file.unlink(missing_ok=True)
        super().start()


class Adopter(Agent):
    """Takes a start of a run that exists already for a resume."""

    def start(self) -> None:
        """Start or resume."""
        if self.file.exists():
            self.resume()
        else:
            super().start()


class Waverer(Agent):
    """Refuses to start a run that exists already, but asks the model before it does."""

    def start(self) -> None:
        """Ask first, then look."""
        if self.file.exists():
            self.run["messages"].append({"role": "user", "content": os.environ["PLUGPULL_PROMPT"]})
            self.ask()
        super().start()


# --- controls that differ in how they treat a person's decision ---


class Deaf(Agent):
    """Does not hear a decision: it asks again."""

    def decide(self, _: str) -> None:
        """Let the call wait on."""


class Forgetful(Agent):
    """Acts on a decision without saving it first."""

    def note(self, decision: str) -> None:
        """Keep the decision in memory; it is saved with the charge's result."""
        self.run["approval"]["decision"] = decision


class Hasty(Agent):
    """Charges before it asks for the approval, and shows that charge's result once it is approved."""

    def may(self, call: Json) -> bool:
        """Charge, then wait for a person."""
        if needs_a_person(call) and not self.run["notes"]:
            self.run["notes"].append(self.send(*read(call)))
        return super().may(call)

    def send(self, tool: str, arguments: Json, key: str | None) -> str:
        """Show the result of the charge that has been made."""
        if tool == "charge_card" and self.run["notes"]:
            return str(self.run["notes"][0])
        return super().send(tool, arguments, key)


class Stubborn(Agent):
    """Asks, and charges whatever the decision is."""

    def use(self, tool: str, arguments: Json, call_id: str) -> str:
        """Make the call."""
        return self.send(tool, arguments, call_id)


class DoubleClicker(Agent):
    """Charges again, under a new key, when a run that has ended is approved a second time."""

    def decide(self, decision: str) -> None:
        """Take every approval for a new one."""
        if decision == "approve" and self.ended():
            calls = [call for m in self.run["messages"] for call in m.get("tool_calls", ())]
            tool, arguments, _ = read(calls[0])
            self.send(tool, arguments, f"again-{uuid.uuid4()}")
        else:
            super().decide(decision)


# --- controls that guard a run against other workers ---


class Locker(Agent):
    """Holds an exclusive lock on the run from its first to its last instant; another worker waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = self.file.with_name("lock").open("w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)


class Fencer(Agent):
    """Takes a new epoch in each process, and neither saves nor sends anything once a newer one is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.epoch = 0
        while self.taken(self.epoch):
            self.epoch += 1
        self.file.with_name(f"epoch-{self.epoch}").touch(exist_ok=False)

    def taken(self, epoch: int) -> bool:
        """Return whether some process has taken an epoch."""
        return self.file.with_name(f"epoch-{epoch}").exists()

    def fence(self) -> None:
        """End with an error if this process is not the newest."""
        if self.taken(self.epoch + 1):
            sys.exit("fenced: another process has taken over this run")

    def send(self, tool: str, arguments: Json, key: str | None) -> str:
        """Send a request as the newest process only."""
        self.fence()
        return super().send(tool, arguments, key)

    def save(self) -> None:
        """Save as the newest process only."""
        self.fence()
        super().save()


# --- controls that differ in how they treat batches, errors, signals and refusals ---


class Batcher(Agent):
    """Makes the calls of a batch at once, each in a thread, and saves each result as it arrives."""

    def make(self, calls: list[Json]) -> bool:
        """Make all calls and wait for them; none waits for a person here."""
        lock = threading.Lock()

        def one(call: Json) -> None:
            result = self.use(*read(call))
            with lock:
                self.keep(call, result)

        threads = [threading.Thread(target=one, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return True


class Rebatcher(Agent):
    """Goes back to the last batch of calls in a resume and makes all of them again, under the same ids."""

    def load(self) -> None:
        """Take up the saved run without what came after its last calls."""
        super().load()
        messages = self.run["messages"]
        last = max((n for n, message in enumerate(messages) if message.get("tool_calls")), default=0)
        del messages[last + 1 :]


class Graceful(Agent):
    """On SIGTERM it goes on until it has saved its next step, and ends then."""

    def __init__(self) -> None:
        super().__init__()
        self.stopping = False
        signal.signal(signal.SIGTERM, self.stop)

    def stop(self, *_: object) -> None:
        """Note that the process is to end."""
        self.stopping = True

    def save(self) -> None:
        """Save, then end if that has been asked for."""
        super().save()
        if self.stopping:
            sys.exit(0)


class Retrier(Agent):
    """Sends a request again, under the same key, when its connection breaks."""

    def send(self, tool: str, arguments: Json, key: str | None) -> str:
        """Send a request, at most twice."""
        try:
            return super().send(tool, arguments, key)
        except ConnectionError:
            return super().send(tool, arguments, key)


class Reporter(Agent):
    """Shows the model an error as the tool's result, so that it asks once more, under a new id."""

    def send(self, tool: str, arguments: Json, key: str | None) -> str:
        """Send a request and return its result or its error."""
        try:
            return super().send(tool, arguments, key)
        except ConnectionError as error:
            return f"{tool} failed: {error}"


class Poisoner(Agent):
    """Never makes a dead process's calls: the transcript keeps a call without a result, and the model is asked.

    What the model's API says then becomes the answer, so nothing but the refusal itself is wrong.
    """

    def pending(self) -> list[Json]:
        """Return the calls of this process only."""
        return [] if self.taken_up else super().pending()

    def refused(self, text: str) -> Json:
        """Answer with the refusal."""
        return {"role": "assistant", "content": text}


# --- controls that keep the transcript in the session store too ---


class Keeper(Agent):
    """Appends what the session store does not hold yet: it looks before it writes."""

    def work(self) -> None:
        """Bring the store up to date, then work."""
        self.append()
        super().work()

    def save(self) -> None:
        """Save the run and bring the store up to date."""
        super().save()
        self.append()

    def append(self) -> None:
        """Append the messages that are missing at the end."""
        self.write(len(plugpull.stored("session")))

    def write(self, first: int) -> None:
        """Append the messages from the given one on."""
        items = self.run["messages"][first:]
        if items:
            plugpull.store("session", items)


class Repeater(Keeper):
    """Counts what the session store has acknowledged, and appends the rest without a look."""

    def append(self) -> None:
        """Append, then note it."""
        count = len(self.run["messages"])
        self.write(sum(self.run["notes"]))
        self.run["notes"] = [count]
        Agent.save(self)


class Dropper(Keeper):
    """Counts what it has sent to the session store, acknowledged or not, and never sends it again."""

    def append(self) -> None:
        """Note it, then append."""
        first = sum(self.run["notes"])
        self.run["notes"] = [len(self.run["messages"])]
        Agent.save(self)
        self.write(first)


# --- controls that break a rule of the arena ---


class Escapee(Agent):
    """Sends every request of the model and of a tool from a process outside the agent's process group."""

    def send(self, tool: str, arguments: Json, key: str | None) -> str:
        """Let another process send a tool's request."""
        return from_outside(lambda: Agent.send(self, tool, arguments, key))

    def ask(self) -> Json:
        """Let another process ask the model."""
        message: Json = json.loads(from_outside(lambda: json.dumps(Agent.ask(self))))
        return message


class Heir(Agent):
    """Lets a process outside the agent's process group inherit every connection."""

    def work(self) -> None:
        """Work with sockets that leave a copy of themselves in another process."""
        connect = socket.socket.connect

        def connect_and_bequeath(connection: socket.socket, address: Any) -> None:
            connect(connection, address)
            apart(lambda: time.sleep(3))

        socket.socket.connect = connect_and_bequeath  # type: ignore[method-assign, assignment]
        super().work()


class Impostor(Agent):
    """Says that it is a version which is not installed."""


def read(call: Json) -> tuple[str, Json, str]:
    """Return a call's tool, arguments and id."""
    return call["function"]["name"], json.loads(call["function"]["arguments"]), call["id"]


def needs_a_person(call: Json) -> bool:
    """Return whether a call waits for a person's decision."""
    required = os.environ.get("PLUGPULL_APPROVAL") == "required"
    return required and call["function"]["name"] == "charge_card"


def apart(work: Callable[[], object]) -> None:
    """Do some work in a process of another session, which ends by itself within seconds."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            signal.alarm(10)
            try:
                work()
            finally:
                os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)


def from_outside(work: Callable[[], str]) -> str:
    """Return what some work returns, done in a process of another session."""
    reading, writing = os.pipe()
    apart(lambda: os.write(writing, work().encode()))
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        return pipe.read()


def write_durably(file: Path, text: str) -> None:
    """Replace a file's text in one step that outlives a crash of the process and of the machine."""
    new = file.with_suffix(f".{os.getpid()}.new")  # two workers of a run must not share it
    with new.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)
    directory = os.open(file.parent, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


MODES: dict[str, type[Agent]] = {
    "outbox": Agent,
    "no-key": NoKey,
    "ledger-first": LedgerFirst,
    "amnesiac": Amnesiac,
    "forger": Forger,
    "liar": Liar,
    "hang": Hang,
    "late": Late,
    "mute": Mute,
    "escapee": Escapee,
    "heir": Heir,
    "impostor": Impostor,
    "fugitive": Fugitive,
    "bungler": Bungler,
    "quitter": Quitter,
    "crasher": Crasher,
    "tidy": Tidy,
    "late-saver": LateSaver,
    "restarter": Restarter,
    "adopter": Adopter,
    "waverer": Waverer,
    "deaf": Deaf,
    "forgetful": Forgetful,
    "hasty": Hasty,
    "stubborn": Stubborn,
    "double-clicker": DoubleClicker,
    "locker": Locker,
    "fencer": Fencer,
    "batcher": Batcher,
    "rebatcher": Rebatcher,
    "graceful": Graceful,
    "retrier": Retrier,
    "reporter": Reporter,
    "poisoner": Poisoner,
    "keeper": Keeper,
    "repeater": Repeater,
    "dropper": Dropper,
}


def main() -> None:
    """Start the run or resume it, as the control that the mode names."""
    control = MODES[os.environ["PLUGPULL_MODE"]]
    plugpull.hello(framework="controls", version="999" if control is Impostor else "1")
    agent = control()
    if sys.argv[1] == "start":
        agent.start()
    else:
        agent.resume()


if __name__ == "__main__":
    main()
