"""What a question says is true, and reads as a person would say it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Session, command
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
    assert one.origins["attach"] == "the content of this file is from the user's files"


def test_an_address_that_the_model_wrote_is_told_apart_from_a_link(
    tmp_path: Path,
) -> None:
    """A reference says where it is from; of other words only what was read is known."""
    read = {"tool": "page", "url": PAGE}
    wrote = {"tool": "page", "url": "https://x.example/b"}
    (one,) = asked(tmp_path, f"Read {PAGE}", [NOTES], [read], [wrote])
    assert one.reason == (
        '"url" decides where this goes (x.example), and what the model read '
        "(the user's files) may have chosen it; private things from there could leave "
        "that way"
    )
    link = {"tool": "page", "url": "{{ first[0] }}"}
    (one,) = asked(tmp_path, f"Read {PAGE}", [NOTES], [read | {"as": "first"}, link])
    assert one.reason.startswith(
        '"url" decides where this goes (x.example), and its value is from page.page; '
    )


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ({"tool": "FILEWRITER", "contents": "x"}, ": it would be a new file"),
        ({"tool": "append_file", "text": "x"}, ": there is no such file yet"),
    ],
)
def test_a_file_that_is_not_there_yet_is_called_new(
    tmp_path: Path, call: dict[str, Any], why: str
) -> None:
    """One that is outside of the workspace is not: its existence is nobody's to ask."""
    path = {"file_path": "zebra.md"}
    (one,) = asked(tmp_path, "Sum up", [NOTES], [call | path])
    assert one.reason == f'the request does not name "zebra.md"{why}'
    outside = asked(tmp_path, "Sum up", [NOTES], [call | {"file_path": "../zebra.md"}])
    assert not any("new file" in one.reason for one in outside)


def test_a_folder_that_is_not_there_yet_is_called_new(tmp_path: Path) -> None:
    call = {"tool": "make_folder", "folder": "zebra"}
    (one,) = asked(tmp_path, "Sum up", [NOTES], [call])
    assert one.reason.endswith('not name "zebra": it would be a new folder')


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
    why = "after it read the user's files, and what it read may have decided it"
    (one,) = asked(tmp_path, "Write to ann", [NOTES], [call])
    assert one.origins == {"to": "the user's words"}
    assert one.reason == (
        "the arguments are the user's words, but the model chose to do this now " + why
    )
    other = {"tool": "delete_file", "file_path": "notes.txt"}
    (one,) = asked(tmp_path, "Tidy up", [NOTES], [other])
    assert "the arguments are the user's words" not in one.reason


def test_every_offer_says_how_far_it_goes(tmp_path: Path) -> None:
    """One form: what, for how long, which arguments, whose files."""
    (one,) = asked(tmp_path, "Answer", [NOTES], [{"tool": "mail", "to": "ann"}])
    assert one.offers == (
        'every call of mail.mail with "ann" in this session, whatever its other '
        "arguments",
        "every call of mail.mail in this session, whatever its arguments",
    )
    write = {"tool": "FILEWRITER", "file_path": "zebra.md", "contents": "x"}
    (one,) = asked(tmp_path, "Sum up", [NOTES], [write])
    every = "every call of files.write_file"
    rest = "arguments, but not on files of your own"
    assert one.offers == (
        f'{every} with "zebra.md" in this session, whatever its other {rest}',
        f"{every} in this session, whatever its {rest}",
    )
    delete = {"tool": "delete_file", "file_path": "notes.txt"}
    (one,) = asked(tmp_path, "Tidy up", [NOTES], [delete])
    assert one.offers == (
        "every call of files.delete_file in this session, whatever its arguments, "
        "also on files of your own",
    )
