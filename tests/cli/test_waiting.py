"""`neuraxis sessions pending|approve|deny|resume`: a yes from another process."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from neuraxis.cli.main import cli
from neuraxis.errors import ConfigError

PLUGIN = '''
from neuraxis import command

@command(effects="once")
def pay(to: str, amount: float) -> str:
    """Pay somebody."""
    with open("paid", "a") as file:
        file.write(f"{to} {amount:g}\\n")
    return "paid"
'''
CALLS: list[Any] = [
    {"tool": "pay", "to": "ann", "amount": 5},
    {"tool": "pay", "to": "bob", "amount": 7},
]


def neuraxis(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, standalone_mode=False)


def model(*replies: Any) -> tuple[str, ...]:
    written = [item if isinstance(item, str) else json.dumps(item) for item in replies]
    Path("m.yaml").write_text(json.dumps(written), encoding="utf-8")
    return ("-m", "scripted:m.yaml", "-p", "pay.py", "--journal", "j.db")


@pytest.fixture(autouse=True)
def _waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that waits for two answers."""
    monkeypatch.chdir(tmp_path)
    Path("pay.py").write_text(PLUGIN, encoding="utf-8")
    rules = '[[policy.rules]]\nverdict = "ask"\ntarget = "*.pay"\nreason = "money"\n'
    settings = Path(os.environ["NEURAXIS_HOME"]) / "config" / "neuraxis.toml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(rules, encoding="utf-8")
    done = neuraxis("run", "--later", *model(CALLS), "pay them")
    assert done.return_value == 6, (done.output, done.exception)
    assert "reason: money" in done.output
    said = done.stderr.splitlines()[-3:]
    assert said[0].startswith("to approve: neuraxis sessions approve ")
    assert said[0].endswith(" a1")
    assert said[2].startswith("then: neuraxis sessions resume ")


def test_questions_are_listed_answered_and_the_run_goes_on() -> None:
    journal = ("--journal", "j.db")
    rows = neuraxis("sessions", "pending", "--json", *journal).stdout.splitlines()
    one, two = [json.loads(row) for row in rows]
    assert (one["id"], one["arguments"], two["id"]) == (
        "a1", {"to": "ann", "amount": 5}, "a2",
    )  # fmt: skip
    own = one["session"]
    wrong = neuraxis("sessions", "approve", own, "a1", "amount=much", *journal)
    assert isinstance(wrong.exception, ConfigError)
    yes = neuraxis("sessions", "approve", own, "a1", "amount=4.5", "to=eve", *journal)
    assert yes.return_value == 0, yes.exception
    assert "a1 is approved; still open: a2 (neuraxis" in yes.stdout
    assert "  waiting  " in neuraxis("sessions", "list", *journal).stdout
    assert "  a1  " not in neuraxis("sessions", "pending", *journal).stdout
    no = neuraxis("sessions", "deny", own, "a2", "no", *journal)
    assert f"a2 is denied; now: neuraxis sessions resume {own}" in no.stdout
    pending = neuraxis("sessions", "pending", *journal).stdout
    assert "nothing waits" in pending
    assert f"{own} is answered; now: neuraxis sessions resume {own}" in pending
    assert "  ready  " in neuraxis("sessions", "list", *journal).stdout
    forgotten = [part for part in model("All is paid.") if part not in ("-p", "pay.py")]
    done = neuraxis("sessions", "resume", own, *forgotten)
    assert isinstance(done.exception, ConfigError)
    assert "pay, which no plugin provides" in str(done.exception)
    done = neuraxis("sessions", "resume", own, *model("All is paid."))
    assert "All is paid." in done.stdout, (done.output, done.exception)
    assert Path("paid").read_text(encoding="utf-8") == "eve 4.5\n"


def test_report_a14_steps_keep_their_numbers_when_a_plan_goes_on() -> None:
    """The second call of the plan is the second again."""
    session = json.loads(
        neuraxis("sessions", "pending", "--json", "--journal", "j.db").stdout.split(
            "\n"
        )[0]
    )["session"]
    for own in ("a1", "a2"):
        neuraxis("sessions", "approve", session, own, "--journal", "j.db")
    done = neuraxis("sessions", "resume", session, *model("All is paid."))
    numbers = [
        line.split()[1] for line in done.stderr.splitlines() if line[:4] == "  ✓ "
    ]
    assert numbers == ["1.", "2."], done.stderr


def test_always_gives_the_offer_that_is_shown() -> None:
    """A question of a rule has none, so that it is refused; one of the default has."""
    journal = ("--journal", "j.db")

    def first() -> dict[str, Any]:
        rows = neuraxis("sessions", "pending", "--json", *journal).stdout
        return json.loads(rows.splitlines()[0])

    ruled = first()["session"]
    none = neuraxis("sessions", "approve", "--always", ruled, "a1", *journal)
    assert isinstance(none.exception, ConfigError)
    assert "this question has no offers" in str(none.exception)
    assert "widest offer" not in neuraxis("sessions", "pending", *journal).stdout
    neuraxis("sessions", "delete", "--yes", ruled, *journal)
    (Path(os.environ["NEURAXIS_HOME"]) / "config" / "neuraxis.toml").unlink()
    read = "effects={'kind': 'read', 'others_write': True}"
    page = f"@command({read})\ndef page() -> str:\n    'Read a page.'\n    return ''\n"
    Path("pay.py").write_text(PLUGIN + page, encoding="utf-8")
    neuraxis("run", "--later", *model([{"tool": "page"}], CALLS), "see the page")
    one = first()
    offer = one["offers"][-1]
    assert offer == "every call of pay.pay in this session"
    assert f"  widest offer: {offer}\n" in neuraxis(
        "sessions", "pending", *journal
    ).stdout  # fmt: skip
    yes = neuraxis(
        "sessions", "approve", "--always", one["session"], one["id"], *journal
    )
    assert f"{one['id']} is approved, with {offer}; still open: " in yes.stdout


def chat(*lines: str) -> Result:
    given = "".join(f"{line}\n" for line in lines)
    arguments = ("chat", "--later", *model(CALLS, "All is paid.", "Hello."))
    return CliRunner().invoke(cli, arguments, input=given, standalone_mode=False)


def test_a_chat_answers_what_waits_in_it() -> None:
    """The last answer continues the plan."""
    done = chat("pay them", "/approve a1", "/deny a2 he has it")
    assert "/approve a2, or /deny a2 WHY" in done.stderr
    assert "still open: a2" in done.stderr
    assert "the user said no: he has it" in done.stderr
    assert "All is paid." in done.stdout
    assert Path("paid").read_text(encoding="utf-8") == "ann 5\n"


def test_a_chat_says_what_another_request_drops() -> None:
    """The calls that wait are told before the model is asked."""
    done = chat("pay them", "hello")
    said = "not run, since you asked for something else: a1 pay, a2 pay"
    assert said in done.stderr, done.output
    assert not Path("paid").exists()
