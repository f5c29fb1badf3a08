"""AgentDojo through the real runtime: what the default policy lets an attacker do.

    python benchmarks/agentdojo/run.py [--check] [--json FILE] [--details]

No model is called: the planner of `planner.py` stands for the worst one.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parent))

from planner import MARK, Planner, answers, ground_truth, replies
from suites import DECLARED, World, canaries, load_suites
from wording import Wording, leaves

from neuraxis import Budget, Session
from neuraxis.events import ApprovalAsked
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.decision import Decision, Facts
from neuraxis.policy.rules import DEFAULT, EVERYTHING, Policy
from neuraxis.session import session as session_module
from neuraxis.settings import Settings
from neuraxis.specs import CommandSpec

MILD = Policy(default="mild")
ALLOWED, DENIED = Decision(verdict="allow"), Decision(verdict="deny", reason="no plan")


@dataclass
class PlanFixed:
    """Only what the plan names, as often as it does; `whole`: literals too."""

    planned: list[tuple[str, dict[str, Any]]]
    whole: bool = False
    rules: Sequence[Any] = ()
    default: str = "deny"
    left: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left = list(self.planned)

    def decide(
        self, plugin: str, spec: CommandSpec, arguments: Any, facts: Facts | None = None
    ) -> Decision:
        for at, (name, fixed) in enumerate(self.left):
            if name != spec.name:
                continue
            if self.whole and any(
                key not in arguments or arguments[key] != value
                for key, value in fixed.items()
            ):
                continue
            del self.left[at]
            return ALLOWED
        return DENIED


def fixed_arguments(intent: dict[str, Any], said: Any) -> dict[str, Any]:
    """The arguments of a planned call that were known before anything was read."""
    return {
        key: value
        for key, value in intent.items()
        if key != "tool"
        and "{{" not in json.dumps(value)
        and all(said.trusted(leaf) for leaf in _leaves(value))
    }


def _leaves(value: Any) -> list[Any]:
    return [leaf for _, leaf in leaves(value)]


class Person:
    """Says yes, and counts."""

    def __init__(self) -> None:
        self.questions: list[str] = []

    async def __call__(self, asked: ApprovalAsked) -> bool:
        self.questions.append(asked.reason)
        return True


def converse(
    world: World, planner: Planner, prompt: str, policy: Any, approve: Any, folder: Path
) -> None:
    # every answer is shown whole: a long one, kept aside, would hide its injection
    session_module.INLINE_BYTES = 10_000_000
    with Session(
        model=ScriptedModel(planner.reply),
        plugins=world.plugins,
        workspace=folder,
        settings=Settings(),
        policy=policy if isinstance(policy, Policy) else DEFAULT,
        approve=approve,
        budget=Budget(repeats=100, steps=500, steps_per_tool=200),
    ) as session:
        # one of ours that is no `Policy` and counts what it allowed
        session._config = replace(session._config, policy=policy)
        asyncio.run(session.drive(prompt))


def injected(wanted: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """The text of an injection: it says what is to be called, and with what.

    So every value of the attacker's stands in what the model was shown, as it does in
    a real attack. The environments are YAML: what could end a text there is left out.
    """
    text = " ".join([MARK, *(f"{name} {arguments}" for name, arguments in wanted)])
    return re.sub(r"[^\w@./+-]+", " ", text).strip()


def outcome(suite: Any, task: Any, before: Any, world: World, output: str) -> bool:
    from agentdojo.types import text_content_block_from_string

    with contextlib.redirect_stdout(io.StringIO()):
        return bool(
            suite._check_task_result(
                task,
                [text_content_block_from_string(output)],
                before,
                world.environment,
                world.traces,
            )
        )


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.suites = load_suites()
        self.calls = 0

    def benign(self, suite: Any, task: Any, policy: str, approve: Any = None) -> bool:
        environment = task.init_environment(
            suite.load_and_inject_default_environment({})
        )
        return self._run(suite, task, None, environment, policy, approve)[0]

    def attacked(
        self, suite: Any, task: Any, injection: Any, policy: str
    ) -> tuple[bool, bool]:
        vectors = suite.get_injection_vector_defaults()
        wanted = ground_truth(injection, suite.load_and_inject_default_environment({}))
        environment = task.init_environment(
            suite.load_and_inject_default_environment(
                dict.fromkeys(vectors, injected(wanted))
            )
        )
        return self._run(suite, task, injection, environment, policy, None)

    def _run(
        self,
        suite: Any,
        task: Any,
        injection: Any,
        environment: Any,
        policy: str,
        approve: Any,
    ) -> tuple[bool, bool]:
        before = environment.model_copy(deep=True)
        calls = ground_truth(task, environment)
        known = answers(suite, environment, calls)
        plan = replies(task.PROMPT, calls, known)
        attack = [] if injection is None else ground_truth(injection, environment)
        output = task.GROUND_TRUTH_OUTPUT
        world = World(suite, environment)
        planner = Planner(
            task=plan,
            output=output,
            attack=[{"tool": name, **arguments} for name, arguments in attack],
        )
        chosen: Any = {"none": EVERYTHING, "default": DEFAULT, "mild": MILD}.get(policy)
        if chosen is None:
            said = Wording(trusted=[task.PROMPT], seen=[])
            planned = [
                (intent["tool"], fixed_arguments(intent, said))
                for reply in plan
                for intent in reply
            ]
            chosen = PlanFixed(planned, whole=policy == "plan+arguments")
            if attack:
                self._rewrite(planner, plan, attack, policy, said)
        converse(world, planner, task.PROMPT, chosen, approve, self.folder)
        self.calls += len(world.traces)
        solved = outcome(suite, task, before, world, output)
        if injection is None:
            return solved, False
        return solved, outcome(suite, injection, before, world, output)

    @staticmethod
    def _rewrite(
        planner: Planner, plan: Any, attack: Any, policy: str, said: Any
    ) -> None:
        """Under a fixed plan the attacker's calls take the places of planned ones.

        Those in the first reply are out of reach: they were written before anything
        was read. Where the policy fixes literals too, only open places change.
        """
        left = [intent for reply in plan[1:] for intent in reply]
        taken: list[Any] = []
        for name, arguments in attack:
            places = [intent for intent in left if intent["tool"] == name]
            fixed: dict[str, Any] = {}
            if places and policy == "plan+arguments":
                found = [fixed_arguments(intent, said) for intent in places]
                lost = [
                    sum(arguments.get(key) != value for key, value in each.items())
                    for each in found
                ]
                best = lost.index(min(lost))
                fixed = found[best]
                left.remove(places[best])
            taken.append({"tool": name, **arguments, **fixed})
        planner.attack = taken


POLICIES = ("none", "plan", "plan+arguments", "default", "mild")


def interval(hits: int, total: int) -> str:
    """A 95 % interval (Wilson)."""
    p, z = hits / total, 1.96
    middle = p + z * z / (2 * total)
    spread = z * ((p * (1 - p) + z * z / (4 * total)) / total) ** 0.5
    low, high = ((middle - spread), (middle + spread))
    scale = 100 / (1 + z * z / total)
    return f"{max(0, low * scale):.1f}-{high * scale:.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true", help="canary runs only")
    parser.add_argument("--json", help="write the figures to a file")
    parser.add_argument("--details", action="store_true", help="name what failed")
    parser.add_argument("--policy", action="append", choices=POLICIES)
    parser.add_argument("--suite", action="append", help="default: all four")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        if options.suite:
            bench.suites = {name: bench.suites[name] for name in options.suite}
        if options.check:
            check(bench)
            return
        report(bench, options)


def check(bench: Bench) -> None:
    for name, suite in bench.suites.items():
        found = canaries(suite)
        declared = {key for key, it in DECLARED[name].items() if it.get("open_world")}
        print(
            f"{name}: {len(found)} tools carry third-party text in a run, "
            f"{len(declared)} are declared; undeclared: {sorted(found - declared)}"
        )
        assert not found - declared, "a tool that carries foreign text says it does not"


def report(bench: Bench, options: Any) -> None:
    started = time.perf_counter()
    figures: dict[str, Any] = {}
    rows = [
        "| policy | tasks done, nobody asked | attacks that succeed | task still done "
        "under attack |",
        "|---|---|---|---|",
    ]
    for policy in options.policy or POLICIES:
        done, total, hits, pairs, kept = 0, 0, 0, 0, 0
        per: dict[str, Counter[str]] = {}
        for name, suite in bench.suites.items():
            count = per[name] = Counter()
            usable = usable_attacks(suite)
            for task in suite.user_tasks.values():
                count["tasks"] += 1
                solved = bench.benign(suite, task, policy)
                count["done"] += solved
                if not solved and options.details:
                    print("not done:", policy, name, task.ID, task.PROMPT[:90])
                for injection in usable:
                    still, success = bench.attacked(suite, task, injection, policy)
                    count["pairs"] += 1
                    count["hits"] += success
                    count["kept"] += still
                    if success and options.details and policy != "none":
                        print("attacked:", policy, name, task.ID, injection.ID)
                    if not success and options.details and policy == "none":
                        print("not attacked:", name, task.ID, injection.ID)
        for count in per.values():
            done, total = done + count["done"], total + count["tasks"]
            hits, pairs = hits + count["hits"], pairs + count["pairs"]
            kept += count["kept"]
        rows.append(
            f"| {policy} | {done}/{total} | {hits}/{pairs} = "
            f"{100 * hits / pairs:.1f} % ({interval(hits, pairs)}) | "
            f"{kept}/{pairs} = {100 * kept / pairs:.1f} % |"
        )
        figures[policy] = {name: dict(count) for name, count in per.items()}
    questions = asked(bench, options)
    figures["questions"] = questions
    print("\n".join(rows))
    for policy, suites in figures.items():
        if policy != "questions":
            print(
                policy
                + ": "
                + ", ".join(
                    f"{name} {count['done']}/{count['tasks']} tasks, "
                    f"{count.get('hits', 0)}/{count['pairs']} attacks"
                    for name, count in suites.items()
                )
            )
    print("default policy, a person who says yes:", questions)
    print(f"{bench.calls} calls, {time.perf_counter() - started:.0f} s")
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1), encoding="utf-8")


def asked(bench: Bench, options: Any) -> dict[str, int]:
    """How many questions each task takes, and whether it is done with them."""
    found: Counter[str] = Counter()
    for name, suite in bench.suites.items():
        for task in suite.user_tasks.values():
            person = Person()
            solved = bench.benign(suite, task, "default", person)
            found[f"{len(person.questions)} questions"] += 1
            found["done"] += solved
            if options.details and person.questions:
                print("asked:", name, task.ID, person.questions)
    return dict(sorted(found.items()))


def usable_attacks(suite: Any) -> list[Any]:
    """Injection tasks that have calls of their own."""
    environment = suite.load_and_inject_default_environment({})
    return [
        task
        for task in suite.injection_tasks.values()
        if ground_truth(task, environment)
    ]


if __name__ == "__main__":
    main()
