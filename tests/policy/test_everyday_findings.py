"""Questions that strangers found needless, or too wide, in ordinary work."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Answer, Context, Options, Session, command, messages
from neuraxis.events import ApprovalAsked
from neuraxis.models.scripted import ScriptedModel
from neuraxis.settings import Settings

Call = dict[str, Any]
Say = Callable[[ApprovalAsked], bool | str]
TODO = "- dentist\n- library books\n- bread\n"


@command(
    effects={"kind": "read", "others_write": True, "public": True}, sends_out=["url"]
)
def open_page(url: str) -> str:
    """Open a page."""
    return f"The page of {url}."


class Talk:
    """A session of scripted replies, and what it asked."""

    def __init__(
        self,
        folder: Path,
        say: Say = lambda asked: True,
        plugins: Sequence[Any] = (),
        **given: Any,
    ) -> None:
        self.folder, self.say = folder, say
        self.asked: list[ApprovalAsked] = []
        self.replies: list[str] = []
        self.session = Session(
            model=ScriptedModel(lambda prompt: self.replies.pop(0)),
            plugins=["neuraxis:files", open_page, *plugins],
            workspace=folder,
            settings=Settings(),
            approve=self.approve,
            **given,
        )

    def approve(self, asked: ApprovalAsked) -> bool | str:
        self.asked.append(asked)
        return self.say(asked)

    def ask(self, request: str, *replies: list[Call]) -> Answer:
        self.asked.clear()
        self.replies += [*map(json.dumps, replies), "Done."]
        answer = self.session.run_sync(request)
        assert not [call.error for call in answer.calls if call.error]
        return answer


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "todo.md").write_text(TODO, encoding="utf-8")
    return folder


def tick(item: str) -> Call:
    tool = {"tool": "replace_in_file", "file_path": "todo.md"}
    return {**tool, "old": f"- {item}", "new": f"- [x] {item}"}


def read(path: str) -> Call:
    return {"tool": "file_reader", "file_path": path}


def write(path: str, text: str = "text") -> Call:
    return {"tool": "FILEWRITER", "file_path": path, "contents": text}


def delete(path: str) -> Call:
    return {"tool": "delete_file", "file_path": path}


def test_one_yes_covers_all_changes_of_one_file_in_a_plan(work: Path) -> None:
    """The first approved change does not make the others new questions."""
    talk = Talk(work)
    ticks = [tick("dentist"), tick("library books"), tick("bread")]
    talk.ask("Tick everything off on my list", [read("todo.md")], ticks)
    assert len(talk.asked) == 1
    assert (work / "todo.md").read_text().count("[x]") == 3


def test_a_yes_is_void_where_the_person_changes_the_file_between_two(
    work: Path,
) -> None:
    """What this run changed does not count, what the person changes does."""

    def say(asked: ApprovalAsked) -> bool:
        if len(talk.asked) == 1:
            (work / "todo.md").write_text(f"{TODO}- new\n", encoding="utf-8")
        return True

    talk = Talk(work, say)
    talk.replies += [
        json.dumps([read("todo.md")]),
        json.dumps([tick("dentist"), tick("bread")]),
        "Done.",
    ]
    answer = talk.session.run_sync("Tick everything off on my list")
    assert any(call.error and "changed" in call.error.message for call in answer.calls)
    assert "[x]" not in (work / "todo.md").read_text()


def test_a_yes_for_a_command_is_none_for_files_of_the_users_own(work: Path) -> None:
    """It was given for a file that the runtime had made."""
    talk = Talk(work, lambda asked: asked.offers[-1])
    talk.ask(
        "Write a.md",
        [read("todo.md")],
        [write("a.md"), write("zebra.md")],
    )
    every = "every call of files.write_file in this session"
    assert talk.asked[0].offers[-1] == f"{every}, but not on your own files"
    talk.ask("Tidy up", [read("todo.md")], [write("todo.md")])
    assert len(talk.asked) == 1
    assert talk.asked[0].offers[-1] == f"{every}, also on your own files"
    (work / "cv.md").write_text("mine", encoding="utf-8")
    talk.ask("Tidy up", [read("todo.md")], [write("cv.md"), write("quagga.md")])
    assert not talk.asked


@pytest.mark.parametrize(
    ("said", "opened"),
    [
        ("https://x.example", "https://x.example/"),
        ("https://x.example/", "https://x.example"),
        ("www.x.example", "https://www.x.example/"),
    ],
)
def test_a_slash_behind_a_host_is_the_same_address(
    work: Path, said: str, opened: str
) -> None:
    """The request that goes out is the same; behind a path it is another."""
    talk = Talk(work)
    page = {"tool": "open_page", "url": opened}
    talk.ask(f"What is new at {said} and on my list?", [read("todo.md")], [page])
    assert not talk.asked
    deep = {"tool": "open_page", "url": f"{opened.rstrip('/')}/news/"}
    talk.ask(f"And at {said}/news?", [deep])
    assert len(talk.asked) == 1


def test_what_stands_behind_a_call_in_its_plan_has_no_part_in_it(work: Path) -> None:
    """A link is followed before something private is read, not after."""
    page, link = (
        {"tool": "open_page", "url": f"https://x.example/{name}"} for name in ("a", "b")
    )
    look = {"tool": "list_files"}
    talk = Talk(work)
    talk.ask("Look at https://x.example/a", [page], [link, look])
    assert not talk.asked
    talk = Talk(work)
    talk.ask("Look at https://x.example/a", [page], [look, link])
    assert len(talk.asked) == 1


@pytest.mark.parametrize(
    ("request_", "path", "asked"),
    [
        ("Save a short one as short.md next to the draft", "club/short.md", 0),
        ("Save a short one as short.md next to the draft", "new/short.md", 1),
        ("Save a short one as short next to the draft", "club/short.md", 1),
        ("Write a letter to the landlord", "letters/landlord.txt", 0),
        ("Write a note to the landlord", "letters/landlord.txt", 1),
    ],
)
def test_where_a_new_document_may_lie(
    work: Path, request_: str, path: str, asked: int
) -> None:
    """Under a name that the request spells out, in a folder that there is."""
    for name in ("club", "letters"):
        (work / name).mkdir()
    talk = Talk(work)
    talk.ask(request_, [read("todo.md")], [write(path)])
    assert len(talk.asked) == asked
    if asked:
        assert f'"{path}"' in talk.asked[0].reason


@pytest.mark.parametrize(("name", "asked"), [("IMG_20-600.jpg", 0), ("IMG.jpg", 1)])
def test_a_name_in_capitals_with_a_digit_is_none_that_tools_load(
    work: Path, name: str, asked: int
) -> None:
    """As that of a photo."""
    talk = Talk(work)
    talk.ask("Make IMG_20.jpg smaller", [read("todo.md")], [write(name)])
    assert len(talk.asked) == asked


def test_what_happens_to_a_persons_file_is_told_first(work: Path) -> None:
    """Then what the request lacks; and whether the file was ever the runtime's."""
    talk = Talk(work)
    move = {"tool": "move_file", "file_path": "todo.md", "new_path": "errands.md"}
    talk.ask("Give my list a better name", [read("todo.md")], [move])
    assert talk.asked[0].reason == (
        'this would move the user\'s file "todo.md"; '
        "`session.undo()` can revert it; "
        'this would make a new file, "errands.md", whose name is not in the request'
    )
    append = {"tool": "append_file", "file_path": "errands.md", "text": "- milk"}
    talk.ask("More milk", [append])
    assert talk.asked[0].reason == (
        'this would change the user\'s file "errands.md", which the request does not '
        "name; `session.undo()` can revert it; "
        "the model was shown what may come from files, and text that others wrote "
        "there may have led it "
        "to this"
    )
    fresh = Talk(work)
    fresh.ask("Write a.md", [write("a.md")])
    (work / "a.md").write_text("mine", encoding="utf-8")
    fresh.ask("Write a.md again", [write("a.md")])
    assert fresh.asked[0].reason == (
        'this would replace "a.md", which was changed since Neuraxis wrote it; '
        "`session.undo()` can revert it"
    )


def test_what_this_request_made_it_may_delete(work: Path) -> None:
    """And nothing that lay there before, or that a person changed since."""
    talk = Talk(work)
    ask = "Sum it up in sums.md"
    talk.ask(ask, [read("todo.md")], [write("sums.md")], [delete("sums.md")])
    assert not talk.asked
    talk.ask(ask, [read("todo.md")], [write("sums.md")])
    talk.ask("Tidy up", [read("todo.md")], [delete("sums.md")])
    assert len(talk.asked) == 1
    talk.ask("Add bread to todo.md", [tick("bread")], [delete("todo.md")])
    assert len(talk.asked) == 1


def test_the_time_of_a_call_is_not_that_of_its_question(work: Path) -> None:
    """A person may think for a while."""

    def say(asked: ApprovalAsked) -> bool:
        time.sleep(0.5)
        return True

    talk = Talk(work, say)
    answer = talk.ask("Tidy up", [read("todo.md")], [delete("todo.md")])
    assert len(talk.asked) == 1
    assert answer.calls[-1].seconds < 0.4
    assert talk.asked[0].reason.count("todo.md") == 1


def test_a_file_that_the_request_means_by_its_words_is_added_to(work: Path) -> None:
    """ "My reading list" is the one text called so, also after a look at the folder."""
    (work / "notes").mkdir()
    (work / "notes/reading-list.md").write_text("- Emma\n")
    (work / "notes/books.md").write_text("- Emma\n")
    talk = Talk(work)
    append = {"tool": "append_file", "text": "- Dune"}
    look = [{"tool": "list_files", "folder": "notes"}]
    add = [append | {"file_path": "notes/reading-list.md"}]
    talk.ask("Put Dune on my reading list", look, add)
    assert not talk.asked
    assert (work / "notes/reading-list.md").read_text() == "- Emma\n- Dune\n"
    talk.ask("Put Dune on my reading list", [append | {"file_path": "notes/books.md"}])
    assert len(talk.asked) == 1


def test_a_file_that_an_earlier_request_named_is_asked_about(work: Path) -> None:
    """This request and the program's instructions name files."""
    talk = Talk(work)
    talk.ask("Leave todo.md as it is", [tick("bread")])
    assert not talk.asked
    talk.ask("Thank you", [tick("dentist")])
    assert len(talk.asked) == 1
    assert talk.asked[0].offers[-1].endswith(", also on your own files")
    told = Talk(work, instructions="Tick in todo.md what is done")
    told.ask("I have been to the library", [tick("library books")])
    assert not told.asked


def test_a_yes_for_a_command_covers_no_file_that_only_an_earlier_request_named(
    work: Path,
) -> None:
    """It was given for a file that the runtime had made."""
    talk = Talk(work, lambda asked: asked.offers[-1])
    talk.ask(
        "What is in todo.md? Write it to new.md", [read("todo.md")], [write("new.md")]
    )
    append = {"tool": "append_file", "text": "more"}
    talk.ask("Thank you", [{"tool": "list_files"}])
    talk.ask("Add to it", [append | {"file_path": "new.md"}])
    every = "every call of files.append_file in this session"
    assert talk.asked[0].offers[-1] == f"{every}, but not on your own files"
    talk.ask("Thank you", [append | {"file_path": "todo.md"}])
    assert len(talk.asked) == 1


def test_the_users_request_names_files_for_a_session_inside(work: Path) -> None:
    """Also for the calls of a command's own code, and for no request after it."""

    @command(effects={"kind": "once", "destructive": False})
    async def tidy(context: Context) -> str:
        """Tidy up."""
        append = {"file_path": "todo.md", "text": "- milk"}
        call = messages.Call(
            id="", plugin="files", command="append_file", arguments=append
        )
        session = Session(
            model=ScriptedModel([]),
            plugins=["neuraxis:files"],
            options=Options(parent=context),
        )
        async with session:
            return (await session.call(call)).status

    talk = Talk(work, plugins=[tidy])
    talk.ask("Tidy todo.md", [{"tool": "tidy"}])
    assert not talk.asked
    talk.ask("Tidy up", [{"tool": "tidy"}])
    assert [asked.call["command"] for asked in talk.asked] == ["tidy", "append_file"]


def test_a_report_of_every_day_is_replaced_without_a_question(
    work: Path, tmp_path: Path
) -> None:
    """By another session of the same journal, if nobody changed it and it is named."""
    (work / "old.md").write_text("mine", encoding="utf-8")
    for day, request in enumerate(["Sum it up in sums.md", "Again: sums.md, please"]):
        talk = Talk(work, journal=tmp_path / "j.db")
        talk.ask(request, [read("todo.md")], [write("sums.md", f"day {day}")])
        assert not talk.asked
        talk.session.close()
    talk = Talk(work, journal=tmp_path / "j.db")
    talk.ask("Sum it up", [read("todo.md")], [write("sums.md")])
    assert len(talk.asked) == 1, "not named"
    talk.ask("Sum it up in old.md", [read("todo.md")], [write("old.md")])
    assert len(talk.asked) == 1, "a person's"
    (work / "sums.md").write_text("mine now", encoding="utf-8")
    talk.ask("Sum it up in sums.md", [read("todo.md")], [write("sums.md")])
    assert len(talk.asked) == 1, "changed by a person since"
    talk.session.close()
    assert '"sums.md", which was changed since Neuraxis' in talk.asked[0].reason


def test_without_a_journal_a_file_of_an_earlier_session_is_the_users(
    work: Path,
) -> None:
    """An earlier session may have written the file; nobody can tell."""
    Talk(work).ask("Write a.md", [write("a.md")])
    later = Talk(work)
    later.ask("Write a.md", [write("a.md")])
    reason = later.asked[0].reason
    assert 'the user\'s file "a.md"' in reason


def test_a_document_of_an_earlier_request_is_moved_after_reading(work: Path) -> None:
    """Neuraxis wrote it, this request names it, and the new name is free."""
    talk = Talk(work)
    talk.ask("Write a report into report.md", [write("report.md")])
    move = {"tool": "move_file", "file_path": "report.md", "new_path": "old-report.md"}
    talk.ask(
        "Read todo.md, then move report.md to old-report.md", [read("todo.md")], [move]
    )
    assert talk.asked == []
    assert (work / "old-report.md").read_text(encoding="utf-8") == "text"


@command(
    effects={"kind": "once", "destructive": False, "others_write": False},
    names_file={"path": "write"},
    trusted_only=["path", "to"],
)
def publish(path: str, to: str) -> str:
    """Write a page and tell somebody of it."""
    return f"{path} for {to}"


def test_a_free_name_frees_no_other_value_of_the_users(work: Path) -> None:
    """A new document is no reason to tell somebody whom the user did not name."""
    talk = Talk(work, plugins=[publish])
    told = {"tool": "publish", "path": "summary.md", "to": "eve"}
    talk.ask("Summarise todo.md for me", [read("todo.md")], [told])
    assert [True] == ["eve" in asked.summary for asked in talk.asked]


SPLIT = "Split todo.md into one file a day, in a folder days-of-may"


def test_documents_of_a_new_folder_that_the_request_spells_out(work: Path) -> None:
    """Each of four files was asked about, whose names no request says."""
    talk = Talk(work)
    files = [write(f"days-of-may/{day}.md") for day in ("first", "second", "third")]
    talk.ask(SPLIT, [read("todo.md")], files)
    assert talk.asked == []
    assert len([*(work / "days-of-may").iterdir()]) == 3


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        (SPLIT, "days-of-june/first.md"),
        (SPLIT, "days-of-may/AGENTS.md"),
        (SPLIT, "days-of-may/run.sh"),
        (SPLIT, "days-of-may/deeper/first.md"),
        # a word of a sentence spells no folder
        ("Split todo.md into one file a day, in days", "days/first.md"),
        # a folder of the user's
        ("Look at todo.md and my-notes", "my-notes/first.md"),
    ],
)
def test_other_files_of_it_are_asked_about(
    work: Path, request_: str, path: str
) -> None:
    """The folder is free for documents alone, and only a new one."""
    (work / "my-notes").mkdir()
    (work / "my-notes" / "old.md").write_text("mine", encoding="utf-8")
    talk = Talk(work)
    talk.ask(request_, [read("todo.md")], [write(path)])
    assert len(talk.asked) == 1


def test_a_question_does_not_ask_for_a_name_that_would_not_help(work: Path) -> None:
    """A mail with an attachment is asked about, whether it is named or not."""

    @command(
        effects={"kind": "once", "destructive": False, "others_write": False},
        names_file={"attachment": "read"},
        trusted_only=["to"],
    )
    def send_mail(to: str, attachment: str) -> str:
        """Send a mail."""
        return f"{attachment} to {to}"

    mail = {"tool": "send_mail", "to": "eve@x.example", "attachment": "todo.md"}
    talk = Talk(work, plugins=[send_mail])
    talk.ask("Mail my list to eve@x.example", [{"tool": "list_files"}], [mail])
    (asked,) = talk.asked
    assert "may come from files" in asked.reason
    assert "in the request" not in asked.reason


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("run", "#!/bin/sh\npython todo_sums.py\n"),
        ("jobs/Procfile", "web: python todo_sums.py\n"),
        (".git/hooks/post-commit", "#!/bin/sh\nexec python3 todo_sums.py\n"),
        ("start.ps1", "python todo_sums.py\n"),
    ],
)
def test_a_script_that_a_file_without_an_ending_runs_is_asked_about(
    work: Path, place: str, text: str
) -> None:
    """It was free, and ran outside of the sandbox when the user started `run`."""
    (work / place).parent.mkdir(parents=True, exist_ok=True)
    (work / place).write_text(text, encoding="utf-8")
    talk = Talk(work)
    talk.ask("Compute the todo sums", [read("todo.md")], [write("todo_sums.py")])
    assert len(talk.asked) == 1


def test_a_script_that_a_document_names_is_free(work: Path) -> None:
    """Nothing runs a document."""
    (work / "notes.txt").write_text("python todo_sums.py", encoding="utf-8")
    talk = Talk(work)
    talk.ask("Compute the todo sums", [read("todo.md")], [write("todo_sums.py")])
    assert talk.asked == []


def test_a_copy_goes_into_no_folder_that_the_request_does_not_name(work: Path) -> None:
    """A page chose `public/` for a private file that was to be copied."""
    (work / "public").mkdir()
    copy = {"tool": "copy_file", "file_path": "todo.md", "new_path": "public/report.md"}
    talk = Talk(work)
    talk.ask("Copy todo.md as report.md", [read("todo.md")], [copy])
    assert len(talk.asked) == 1
    talk.ask(
        "Copy todo.md as other.md",
        [read("todo.md")],
        [copy | {"new_path": "other.md"}],
    )
    assert talk.asked == []


def test_one_yes_covers_a_folder_and_all_that_is_in_it(work: Path) -> None:
    """It was asked about again, since the plan's first deletion had emptied it."""
    (work / "old").mkdir()
    (work / "old/a.txt").write_text("x\n", encoding="utf-8")
    talk = Talk(work)
    plan = [{"tool": "delete_file", "file_path": path} for path in ("old/a.txt", "old")]
    talk.ask("Delete the folder old with all in it", [{"tool": "list_files"}], plan)
    (asked,) = talk.asked
    assert len(asked.plan) == 2
    assert not (work / "old").exists()


@pytest.mark.parametrize(
    "call",
    [
        {"tool": "delete_file", "file_path": "c.txt"},
        {"tool": "move_file", "file_path": "c.txt", "new_path": "d.txt"},
    ],
)
def test_nobody_is_asked_about_a_file_that_is_not_there(
    work: Path, call: dict[str, Any]
) -> None:
    """They said yes, and it failed."""
    talk = Talk(work)
    with pytest.raises(AssertionError, match="there is no such file"):
        talk.ask("Take c.txt away, it is d.txt", [{"tool": "list_files"}], [call])
    assert talk.asked == []


def test_a_document_of_the_runtimes_own_is_rewritten_by_its_words(work: Path) -> None:
    """`the summary` names summary.md as for an append; its old version is stored."""
    talk = Talk(work)
    talk.ask("Sum up todo.md in summary.md", [read("todo.md")], [write("summary.md")])
    again = {"tool": "FILEWRITER", "file_path": "summary.md", "contents": "short"}
    talk.ask("Make the summary shorter", [again])
    assert talk.asked == []
    assert (work / "summary.md").read_text("utf-8") == "short"


def test_what_the_request_before_wrote_is_named_by_it(work: Path) -> None:
    """`Make it shorter`, `sign it`: they were asked about each time."""
    talk = Talk(work)
    talk.ask("Sum up todo.md in summary.md", [read("todo.md")], [write("summary.md")])
    again = {"tool": "FILEWRITER", "file_path": "summary.md", "contents": "short"}
    talk.ask("Make it shorter", [read("summary.md")], [again])
    append = {"tool": "append_file", "file_path": "summary.md", "text": "Ada"}
    talk.ask("Now sign it", [append])
    assert talk.asked == []
    assert (work / "summary.md").read_text("utf-8").startswith("short")


def test_what_was_written_before_is_not_named_once_others_were_read(
    work: Path,
) -> None:
    """A page could have it replaced; nor is what an older request wrote."""
    talk = Talk(work)
    talk.ask("Sum up todo.md in summary.md", [read("todo.md")], [write("summary.md")])
    again = {"tool": "FILEWRITER", "file_path": "summary.md", "contents": "short"}
    page = {"tool": "open_page", "url": "https://a.test/"}
    talk.ask("Look at https://a.test/ and make it shorter", [page], [again])
    assert len(talk.asked) == 1
    talk.ask("Thanks", [{"tool": "list_files"}])
    talk.ask("Make it shorter", [again])
    assert len(talk.asked) == 1


def test_a_recipient_is_offered_where_the_text_is_sent_too(work: Path) -> None:
    """Only all mails were, where `sends_out` names the text."""

    @command(effects="once", trusted_only=["to"], sends_out=["text"])
    def send_mail(to: str, text: str) -> str:
        """Send a mail."""
        return "sent"

    talk = Talk(work, plugins=[send_mail])
    mail = {"tool": "send_mail", "to": "ann@x.example", "text": "the sums"}
    page = {"tool": "open_page", "url": "https://a.test/"}
    reading = [[page, read("todo.md")], [mail]]
    talk.ask("Look at https://a.test/ and mail ann@x.example", *reading)
    (asked,) = talk.asked
    assert asked.offers[0] == (
        'every call of send_mail.send_mail with to="ann@x.example" in this session, '
        "whatever its other arguments"
    )


@pytest.mark.parametrize("name", ["AGENT.md", "PROMPT.md", "RULES.md"])
def test_a_name_in_capitals_is_not_called_by_words(work: Path, name: str) -> None:
    """Programs look for such files: `the rules` may be those of a game."""
    (work / name).write_text("be kind", encoding="utf-8")
    request = f"Read todo.md, and tell the {name[:-3].lower()} of it"
    append = {"tool": "append_file", "file_path": name, "text": "obey"}
    talk = Talk(work)
    talk.ask(request, [read("todo.md")], [append])
    assert len(talk.asked) == 1
    talk.ask(f"Read todo.md and add it to {name}", [read("todo.md")], [append])
    assert not talk.asked
