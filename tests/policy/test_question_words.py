"""What a question says is true, and reads as a person would say it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Session, call_errors, command
from neuraxis.events import ApprovalAsked
from neuraxis.models.scripted import ScriptedModel

NOTES = {"tool": "file_reader", "file_path": "notes.txt"}
PAGE = "https://x.example/a"


@command(effects="read", sends_out=["url"])
def page(url: str) -> list[str]:
    """Reads a page; answers its links."""
    return [f"{url}/next"]


@command(
    effects={"kind": "once", "destructive": False, "others_write": False},
    trusted_only=["to"],
    names_file={"attach": "read"},
)
def mail(to: str, attach: str = "") -> None:
    """Sends a mail."""


@command(
    effects={"kind": "once", "destructive": False, "others_write": False},
    trusted_only=["to"],
    names_file={"attach": "read"},
)
def mail_notes(to: str, attach: str = "notes.txt") -> None:
    """Sends a mail, with the notes if nothing else is named."""


def asked(
    folder: Path,
    request: str,
    *replies: list[dict[str, Any]],
    say: Callable[[ApprovalAsked], bool | str] = lambda asked: True,
) -> list[ApprovalAsked]:
    """The questions of one request, in a folder with notes."""
    (folder / "notes.txt").write_text("milk\n", encoding="utf-8")
    found: list[ApprovalAsked] = []

    def approve(question: ApprovalAsked) -> bool | str:
        found.append(question)
        return say(question)

    with Session(
        model=ScriptedModel([*map(json.dumps, replies), "Done."]),
        plugins=["neuraxis:files", page, mail, mail_notes],
        workspace=folder,
        approve=approve,
    ) as session:
        session.run_sync(request)
    return found


@pytest.mark.parametrize("tool", ["mail", "mail_notes"])
def test_a_file_that_is_left_out_is_no_origin(tmp_path: Path, tool: str) -> None:
    """On a page it would look as if one were attached, as a default of it is."""
    (one,) = asked(tmp_path, "Answer", [NOTES], [{"tool": tool, "to": "ann"}])
    assert list(one.origins) == ["to", "attach"][: 1 + (tool == "mail_notes")]
    given = {"tool": tool, "to": "ann", "attach": "notes.txt"}
    (one,) = asked(tmp_path, "Answer", [NOTES], [given])
    assert one.origins["attach"] == "a file of the user's"


def test_an_address_that_the_model_wrote_is_told_apart_from_a_link(
    tmp_path: Path,
) -> None:
    """A reference says where it is from; of other words only what was read is known."""
    read = {"tool": "page", "url": PAGE}
    wrote = {"tool": "page", "url": "https://x.example/b"}
    (one,) = asked(tmp_path, f"Read {PAGE}", [NOTES], [read], [wrote])
    assert one.reason == (
        "this would send a request to x.example; text from files may have chosen its "
        'address ("url"), and private things that were read could leave with it'
    )
    assert one.origins == {"url": "written by the model after it read files"}
    link = {"tool": "page", "url": "{{ first[0] }}"}
    (one,) = asked(tmp_path, f"Read {PAGE}", [NOTES], [read | {"as": "first"}, link])
    assert one.origins == {"url": "from answers of page.page"}


@pytest.mark.parametrize(
    "call",
    [{"tool": "FILEWRITER", "contents": "x"}, {"tool": "append_file", "text": "x"}],
)
def test_a_file_that_is_not_there_yet_is_called_new(
    tmp_path: Path, call: dict[str, Any]
) -> None:
    """One that is outside of the workspace is not: its existence is nobody's to ask."""
    path = {"file_path": "zebra.md"}
    (one,) = asked(tmp_path, "Sum up", [NOTES], [call | path])
    assert one.reason == (
        'this would make a new file, "zebra.md", whose name is not in the request'
    )
    outside = asked(tmp_path, "Sum up", [NOTES], [call | {"file_path": "../zebra.md"}])
    assert not any("new file" in one.reason for one in outside)


def test_a_folder_that_is_not_there_yet_is_called_new(tmp_path: Path) -> None:
    call = {"tool": "make_folder", "folder": "zebra"}
    (one,) = asked(tmp_path, "Sum up", [NOTES], [call])
    assert one.reason == (
        'this would make a new folder, "zebra", whose name is not in the request'
    )


def test_one_yes_for_a_plan_covers_a_file_that_the_plan_makes(tmp_path: Path) -> None:
    """The second question would not say that the file is new."""
    write = {"tool": "FILEWRITER", "file_path": "zebra.md", "contents": "x"}
    append = {"tool": "append_file", "file_path": "zebra.md", "text": "y"}
    (one,) = asked(tmp_path, "Sum up", [NOTES], [write, append])
    assert len(one.plan) == 2
    assert (tmp_path / "zebra.md").read_text("utf-8") == "x\ny"


def test_words_of_the_user_do_not_contradict_the_reason(tmp_path: Path) -> None:
    """Whose words the arguments are is said, and that the decision came later."""
    call = {"tool": "mail", "to": "ann"}
    (one,) = asked(tmp_path, "Write to ann", [NOTES], [call])
    assert one.origins == {"to": "your words"}
    assert one.reason == (
        "the model was shown what may come from files, and text that others wrote "
        "there may have led it "
        "to this"
    )


def test_every_offer_says_how_far_it_goes(tmp_path: Path) -> None:
    """One form: what, for how long, which arguments, whose files."""
    (one,) = asked(tmp_path, "Answer", [NOTES], [{"tool": "mail", "to": "ann"}])
    assert one.offers == (
        'every call of mail.mail with to="ann" in this session',
        "every call of mail.mail in this session",
    )
    write = {"tool": "FILEWRITER", "file_path": "zebra.md", "contents": "x"}
    (one,) = asked(tmp_path, "Sum up", [NOTES], [write])
    every = "every call of files.write_file"
    rest = "but not on your own files"
    assert one.offers == (
        f'{every} with file_path="zebra.md" in this session, '
        f"whatever its other arguments, {rest}",
        f"{every} in this session, {rest}",
    )
    delete = {"tool": "delete_file", "file_path": "notes.txt"}
    (one,) = asked(tmp_path, "Tidy up", [NOTES], [delete])
    assert one.offers == (
        "every call of files.delete_file in this session, also on your own files",
    )


def test_a_file_of_ones_own_gets_its_real_reason_and_a_yes_for_itself(
    tmp_path: Path,
) -> None:
    """To name a program by its path is not enough; undo takes a yes back."""
    (tmp_path / "tools").mkdir()
    for name in ("tools/rate.py", "tools/other.py"):
        (tmp_path / name).write_text("RATE = 0.3", encoding="utf-8")

    def change(path: str, new: str) -> list[dict[str, Any]]:
        old = f"RATE = 0.{int(new) - 1}"
        call = {"tool": "replace_in_file", "file_path": path, "old": old}
        return [call | {"new": f"RATE = 0.{new}"}]

    one, other = asked(
        tmp_path, "The rate in rate.py and other.py is 0.5", [NOTES],
        change("tools/rate.py", "4"), change("tools/rate.py", "5"),
        change("tools/other.py", "4"),
        say=lambda asked: asked.offers[0],
    )  # fmt: skip
    assert one.reason == (
        "the model was shown what may come from files, and text that others wrote "
        "there may have led it "
        'to this; "tools/rate.py" may be run or loaded by programs; '
        "`session.undo()` can revert it"
    )
    every, rest = "every call of files.replace_in_file", "also on your own files"
    assert one.offers == (
        f'{every} with file_path="tools/rate.py" in this session, '
        f"whatever its other arguments, {rest}",
        f"{every} in this session, {rest}",
    )
    assert '"tools/other.py"' in other.reason
    assert (tmp_path / "tools/rate.py").read_text("utf-8") == "RATE = 0.5"


def test_only_what_undo_takes_back_is_said_to_be_taken_back(tmp_path: Path) -> None:
    """A plugin that opens files itself stores no old versions."""

    @command(names_file={"path": "write"}, trusted_only=["path"])
    def empty(path: str) -> None:
        """Empties a file."""

    questions: list[ApprovalAsked] = []

    def approve(question: ApprovalAsked) -> bool:
        questions.append(question)
        return False

    (tmp_path / "notes.txt").write_text("milk\n", encoding="utf-8")
    call = json.dumps([{"tool": "empty", "path": "notes.txt"}])
    with Session(
        model=ScriptedModel([call, "Done."]), plugins=[empty], workspace=tmp_path,
        approve=approve,
    ) as session:  # fmt: skip
        session.run_sync("Empty notes.txt")
    (one,) = questions
    assert one.reason == 'this would replace the user\'s file "notes.txt"'


def test_what_decides_how_often_something_is_sent_counts_as_sent(
    tmp_path: Path,
) -> None:
    """A loop over private lines tells others how many there are."""

    @command(effects="read", names_file={"path": "read"})
    def lines(path: str) -> list[str]:
        """The lines of a file."""
        return ["milk", "bread"]

    questions: list[ApprovalAsked] = []

    def approve(question: ApprovalAsked) -> bool:
        questions.append(question)
        return False

    (tmp_path / "notes.txt").write_text("milk\n", encoding="utf-8")
    plan = [
        {"tool": "lines", "path": "notes.txt", "as": "found"},
        {"tool": "page", "url": PAGE, "$for_each": "{{ found }}"},
    ]
    with Session(
        model=ScriptedModel([json.dumps(plan), "Done."]), plugins=[lines, page],
        workspace=tmp_path, approve=approve,
    ) as session:  # fmt: skip
        session.run_sync(f"Read {PAGE}")
    assert [len(one.calls) for one in questions] == [2]
    first: Any = questions[0].plan[0]
    assert first["reason"] == (
        "this would send a request to x.example; text from files may have chosen its "
        'address ("url"), and private things from files and answers of lines.lines '
        "could leave with it"
    )


def test_a_script_that_ran_has_changed_nothing_yet(tmp_path: Path) -> None:
    """The question tells what would become of the files, in its one line, too."""
    told = call_errors.held_back({"changed": ["a.csv"], "made": ["b"]}, "")
    assert told == 'the script would change "a.csv" and make "b"'
