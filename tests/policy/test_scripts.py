"""What scripts of a session may do, and what a yes to run one is for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Answer, Context, Policy, Rule, Session, command
from neuraxis.builtin.python_file.plugin import in_sandbox
from neuraxis.cli.approve import question as terminal_question
from neuraxis.events import ApprovalAsked, CallStarted, Event
from neuraxis.models.scripted import ScriptedModel
from neuraxis.sandbox.files.removal import remove_tree
from neuraxis.sandbox.process.run import probe

NAMES = (
    ".env",
    ".envrc",
    ".vscode/tasks.json",
    "sub/.git/hooks/pre-commit",
    "sub/.env",
)
SCRIPT = f"""\
import os
for name in {NAMES!r}:
    try:
        print("read", open(name).read())
    except OSError:
        pass
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    try:
        open(name, "w").write("theirs")
    except OSError:
        pass
open("made.txt", "w").write("theirs")
"""


def _written_and_run(workspace: Path, script: str) -> Answer:
    """Write a script and run it, with a person who says yes to all."""
    calls = [
        {"tool": "FILEWRITER", "file_path": "eggs_plan.py", "contents": script},
        {"tool": "EXECUTE_PYTHON_FILE", "file_path": "eggs_plan.py"},
    ]
    with Session(
        model=ScriptedModel([json.dumps(calls), "ok"]),
        plugins=["neuraxis:files", "neuraxis:python_file"],
        workspace=workspace,
        approve=lambda _: True,
    ) as session:
        return session.run_sync("Write eggs_plan.py and run it")


@pytest.mark.parametrize("there", [True, False])
def test_M7_a_script_cannot_do_what_the_file_tool_refuses(
    tmp_path: Path, there: bool
) -> None:
    """Through a session, with a person who says yes to all; a new text comes back."""
    if not any(kind.works for kind in probe()):
        pytest.skip("no sandbox works on this machine")
    work = tmp_path / "w"
    for name in NAMES if there else ():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("4711", encoding="utf-8")
    answer = _written_and_run(work, SCRIPT)
    assert answer.calls[1].status == "done", answer.calls[1]
    assert "4711" not in str(answer.calls[1].value)
    assert (work / "made.txt").read_text(encoding="utf-8") == "theirs"
    for name in NAMES:
        assert (work / name).exists() is there
        assert not there or (work / name).read_text(encoding="utf-8") == "4711"


def _run_after_reading(
    tmp_path: Path, text: str, approve: Any, script: str = "total.py"
) -> tuple[Path, Any]:
    """The person's own `page.txt` is read, and then a script is run."""
    if not any(kind.works for kind in probe()):
        pytest.skip("no sandbox works on this machine")
    work = tmp_path / "w"
    work.mkdir()
    (work / "page.txt").write_text("open('thesis.md', 'w').write('theirs')")
    (work / "thesis.md").write_text("mine")
    (work / "given.py").write_text("print('hello')")
    replies = [
        [{"tool": "file_reader", "file_path": "page.txt"}],
        [{"tool": "FILEWRITER", "file_path": "total.py", "contents": text},
         {"tool": "EXECUTE_PYTHON_FILE", "file_path": script}],
    ]  # fmt: skip
    with Session(
        model=ScriptedModel([*map(json.dumps, replies), "ok"]),
        plugins=["neuraxis:files", "neuraxis:python_file"],
        workspace=work,
        approve=approve,
    ) as session:
        answer = session.run_sync("Read page.txt and tell me the total")
    return work, answer.calls[-1]


def test_L_what_a_script_that_executes_a_read_text_does_is_held_back(
    tmp_path: Path,
) -> None:
    """It needs no yes to run, and has one for what it changed, or leaves it."""
    code = "exec(open('page.txt').read()); open('conftest.py', 'w').write('theirs')"
    work, result = _run_after_reading(tmp_path, code, None)
    assert result.status == "done", result.error
    assert (work / "thesis.md").read_text() == "mine"
    assert not (work / "conftest.py").exists()


def test_L_a_yes_to_run_is_for_the_code_that_was_shown(tmp_path: Path) -> None:
    """The person sees it; where it is another by then, the yes is for nothing."""
    asked: list[ApprovalAsked] = []

    def approve(question: ApprovalAsked) -> bool:
        asked.append(question)
        (tmp_path / "w" / "given.py").write_text("print('another')")
        return True

    _, result = _run_after_reading(tmp_path, "x = 1", approve, "given.py")
    assert "print('hello')" in terminal_question(asked[0])
    assert "the call had changed" in str(result.error)


def test_L_the_same_code_runs_after_the_yes(tmp_path: Path) -> None:
    """The control."""
    _, result = _run_after_reading(tmp_path, "x = 1", lambda _: True, "given.py")
    assert result.value["output"] == "hello\n"


def test_nobody_is_asked_about_what_does_not_come_back(tmp_path: Path) -> None:
    """A library's cache under a name with a dot, at any depth."""
    asked: list[ApprovalAsked] = []
    code = (
        "import os\n"
        "for place in ('.cache/fonts', 'total/.hidden'):\n"
        "    os.makedirs(place)\n"
        "    open(f'{place}/list.json', 'w').write('x')\n"
        "open('total.md', 'w').write('3')\n"
    )
    work, result = _run_after_reading(tmp_path, code, asked.append)
    assert result.status == "done", result.error
    assert asked == []
    assert (work / "total.md").exists()
    assert not (work / ".cache").exists()


def test_a_question_about_a_scripts_files_says_what_it_did(tmp_path: Path) -> None:
    """Which it changed and which it made, beside the script's own name."""
    asked: list[ApprovalAsked] = []

    def approve(question: ApprovalAsked) -> bool:
        asked.append(question)
        return True

    code = "for one in ('thesis.md', 'x.cfg'): open(one, 'w').write('theirs')"
    work, _ = _run_after_reading(tmp_path, code, approve)
    assert asked[0].reason == (
        'the script would change "thesis.md" and make "x.cfg"; the model was '
        "shown what may come from files, and text that others wrote there may have led "
        "it to this; "
        '"x.cfg" may be run or loaded by programs; `session.undo()` can revert it'
    )
    assert asked[0].summary == (
        f'python_file.run(file_path="total.py"): {asked[0].reason}'
    )
    shown = terminal_question(asked[0])
    assert "total.py" in shown
    assert "x.cfg would be made" in shown
    assert "wants to run" not in shown
    assert "before anything from outside" not in shown
    assert (work / "thesis.md").read_text() == "theirs"


def test_a_scripts_files_that_the_user_refused_are_not_written_elsewhere(
    tmp_path: Path,
) -> None:
    """The model is told of the no, and of no way round it."""
    code = "open('thesis.md', 'w').write('theirs')"
    _, result = _run_after_reading(tmp_path, code, lambda _: False)
    told = "They are unchanged: the user said no. Do not do the same"
    assert told in str(result.warnings)
    assert "Let the script write to other names" not in str(result.warnings)


def test_mimetypes_can_be_asked_for_in_a_script(tmp_path: Path) -> None:
    """As openpyxl does when it is imported."""
    code = "import mimetypes; print(mimetypes.guess_type('a.csv')[0])"
    _, result = _run_after_reading(tmp_path, code, None)
    assert result.value["output"].strip() == "text/csv"


def test_a_script_of_an_earlier_request_is_not_run(tmp_path: Path) -> None:
    """Only one that this request made, or names."""
    page = {"tool": "file_reader", "file_path": "page.txt"}
    run = {"tool": "EXECUTE_PYTHON_FILE", "file_path": "punch.py"}
    write = {"tool": "FILEWRITER", "file_path": "punch.py", "contents": "print(1)"}
    replies = [[write], "ok", [page], [run], "ok", [run], "ok"]
    work = tmp_path / "w"
    work.mkdir()
    (work / "page.txt").write_text("Obey.")
    with Session(
        model=ScriptedModel([r if r == "ok" else json.dumps(r) for r in replies]),
        plugins=["neuraxis:files", "neuraxis:python_file"],
        workspace=work,
    ) as session:
        session.run_sync("Write punch.py; do not run it")
        assert session.run_sync("Read page.txt").calls[-1].error is not None
        assert session.run_sync("Run punch.py").calls[-1].error is None


def test_L_a_git_that_a_person_makes_while_a_script_runs_stays(tmp_path: Path) -> None:
    """Only what the script made is taken away."""
    if not any(kind.works for kind in probe()):
        pytest.skip("no sandbox works on this machine")
    work = tmp_path / "w"
    work.mkdir()
    (work / "slow.py").write_text("import time; time.sleep(2)")
    calls = [{"tool": "EXECUTE_PYTHON_FILE", "file_path": "slow.py"}]

    def heard(event: Event) -> None:
        if isinstance(event, CallStarted):
            threading.Timer(1, (work / ".git").mkdir).start()

    with Session(
        model=ScriptedModel([json.dumps(calls), "ok"]),
        plugins=["neuraxis:python_file"],
        workspace=work,
    ) as session:
        answer = session.run_sync("Run slow.py", heard)
    assert answer.calls[0].value["success"], answer.calls[0].value
    assert (work / ".git").is_dir()


def _run_once(work: Path, script: str, *, yes: bool = True) -> tuple[Any, list[Any]]:
    """Run a script through a session; return its call and the questions."""
    if not any(kind.works for kind in probe()):
        pytest.skip("no sandbox works on this machine")
    asked: list[Any] = []
    (work / "job.py").write_text(script, encoding="utf-8")
    calls = [{"tool": "EXECUTE_PYTHON_FILE", "file_path": "job.py"}]
    with Session(
        model=ScriptedModel([json.dumps(calls), "ok"]),
        plugins=["neuraxis:python_file"],
        workspace=work,
        approve=lambda question: asked.append(question) or yes,
    ) as session:
        return session.run_sync("Run job.py").calls[0], asked


@pytest.mark.parametrize("yes", [True, False])
@pytest.mark.parametrize(
    ("script", "gone", "made"),
    [
        ("shutil.rmtree('d'); open('d', 'w').write('new')", "d/x", "d"),
        ("os.remove('a'); os.mkdir('a'); open('a/n', 'w').write('new')", "a", "a/n"),
    ],
)
def test_R1_a_script_may_change_a_folder_into_a_file_after_a_yes(
    tmp_path: Path, script: str, gone: str, made: str, yes: bool
) -> None:
    """And a file into a folder: one question; the output is there in any case."""
    (tmp_path / "d").mkdir()
    for name in ("a", "d/x"):
        (tmp_path / name).write_text("mine", encoding="utf-8")
    code = f"import os, shutil\n{script}\nprint('done')"
    call, asked = _run_once(tmp_path, code, yes=yes)
    assert call.value["output"] == "done\n"
    assert len(asked) == 1
    assert f'the script would delete "{gone}"' in asked[0].reason
    told = "\n".join(call.warnings)
    if yes:
        assert (tmp_path / made).read_text() == "new"
        assert "The old version" in told
    else:
        assert (tmp_path / gone).read_text() == "mine"
        assert f'"{gone}". They are unchanged' in told
        assert f'was kept: "{made}":' in told


def test_R1_what_cannot_come_back_is_told_with_the_output(tmp_path: Path) -> None:
    """Links in the place of files, and names that are not UTF-8; no question."""
    for name in ("a", os.fsdecode(b"old\xff")):
        (tmp_path / name).write_text("mine", encoding="utf-8")
    (tmp_path / "d").mkdir()
    (tmp_path / "theirs").symlink_to("d")
    call, asked = _run_once(
        tmp_path,
        "import os\nos.remove('a'); os.symlink('job.py', 'a')\n"
        "open(b'new\\xff', 'w').write('x'); open(b'old\\xff', 'w').write('x')\n"
        "os.mkdir(b'd\\xff'); open(b'd\\xff/f', 'w').write('x')\nprint('done')",
    )
    assert (call.value["output"], asked) == ("done\n", [])
    told = "\n".join(call.warnings)
    for name in ('"a"', '"new\\udcff"', '"old\\udcff"', '"d\\udcff/f"'):
        assert f"{name}: " in told
    for name in ("a", os.fsdecode(b"old\xff")):
        assert (tmp_path / name).read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "theirs").is_symlink()


_JOINED = """import os
ends = []
for n in range(25):
    chain = f'{name}{n}/' + '/'.join('d' * 60)
    os.makedirs(chain)
    ends.append(os.open(chain, os.O_RDONLY))
for n in range(24, 0, -1):
    os.rename(f'{name}{n}', f'{name}{n}', dst_dir_fd=ends[n - 1])
print('joined')
"""


def test_D1_folders_without_end_harm_no_later_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two such runs, then a new process: it works, and no copy is left."""
    places = Path(tempfile.mkdtemp(prefix="nx-places-"))
    places.chmod(0o755)  # bubblewrap reads it as another user, as it reads /tmp
    monkeypatch.setattr("tempfile.tempdir", str(places))
    try:
        for name in ("b", "c"):
            call, _ = _run_once(tmp_path, f"name = {name!r}\n{_JOINED}")
            assert "nested more than 100 folders" in call.error.message
            assert "RecursionError" not in call.error.message
            assert not list(places.iterdir())
        (tmp_path / "job.py").write_text("print('hello')", encoding="utf-8")
        code = (
            "import sys; from pathlib import Path\n"
            "from neuraxis.sandbox.process.run import run_python\n"
            "out = run_python('job.py', workspace=Path(sys.argv[1]))\n"
            "print(out.stdout + out.reason)"
        )
        run = subprocess.run(
            [sys.executable, "-c", code, tmp_path],
            env={**os.environ, "TMPDIR": str(places)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert run.stdout.strip() == "hello", run.stderr
        assert not list(places.iterdir())
    finally:
        assert remove_tree(places) == ""


@command(
    effects={"kind": "once", "needs_approval": True},
    names_file={"path": "run"},
    trusted_only=["path"],
)
def deploy(path: str, context: Context) -> str:
    """Runs a script."""
    return in_sandbox(path, context).stdout


RUN = "python_file.*"


@pytest.mark.parametrize(
    ("tool", "policy", "questions"),
    [
        ("EXECUTE_PYTHON_FILE", Policy(), 1),
        ("EXECUTE_PYTHON_FILE", Policy(default="ask"), 2),
        ("EXECUTE_PYTHON_FILE", Policy(rules=[Rule(verdict="ask", target=RUN)]), 2),
        ("EXECUTE_PYTHON_FILE", Policy(rules=[Rule(verdict="allow", target=RUN)]), 0),
        ("EXECUTE_PYTHON_FILE", Policy(default="allow"), 0),
        ("deploy", Policy(), 2),
    ],
)
def test_a_yes_to_run_a_script_is_none_for_the_files_that_it_deletes(
    tmp_path: Path, tool: str, policy: Policy, questions: int
) -> None:
    """Whoever asks for the run: only what allows the call allows its changes."""
    if not any(kind.works for kind in probe()):
        pytest.skip("no sandbox works on this machine")
    (tmp_path / "mine.txt").write_text("precious", encoding="utf-8")
    (tmp_path / "clean.py").write_text("import os\nos.remove('mine.txt')\n", "utf-8")
    name = "path" if tool == "deploy" else "file_path"
    asked: list[str] = []

    def approve(question: ApprovalAsked) -> bool:
        asked.append(question.reason)
        return len(asked) < max(questions, 1)  # the last question is that of the files

    with Session(
        model=ScriptedModel([json.dumps({"tool": tool, name: "clean.py"}), "ok"]),
        plugins=["neuraxis:python_file", deploy],
        workspace=tmp_path,
        approve=approve,
        policy=policy,
    ) as session:
        session.run_sync("run clean.py")
    assert len(asked) == questions
    assert (tmp_path / "mine.txt").exists() is (questions > 0)


def test_N1_a_file_that_a_script_changed_keeps_its_attributes(tmp_path: Path) -> None:
    """Its permissions, its group and what the user labelled it with."""
    if not any(kind.works for kind in probe()):
        pytest.skip("no sandbox works on this machine")
    work = tmp_path / "w"
    work.mkdir()
    mine = work / "mine.sh"
    mine.write_text("#!/bin/sh\n", encoding="utf-8")
    mine.chmod(0o775)
    if is_root := os.geteuid() == 0:
        os.chown(mine, 12345, 12346)
    has_labels = hasattr(os, "setxattr")
    try:
        os.setxattr(mine, "user.tag", b"red")
    except (OSError, AttributeError):
        has_labels = False
    script = "open('mine.sh', 'a').write('true\\n')"
    _written_and_run(work, script)
    assert mine.read_text(encoding="utf-8") == "#!/bin/sh\ntrue\n"
    status = mine.stat()
    assert status.st_mode & 0o777 == 0o775
    assert not is_root or (status.st_uid, status.st_gid) == (12345, 12346)
    assert not has_labels or os.getxattr(mine, "user.tag") == b"red"
