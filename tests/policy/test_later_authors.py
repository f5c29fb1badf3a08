"""Findings of the seventeenth and eighteenth author of everyday requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from neuraxis import command
from neuraxis.policy.files.file_names import is_document
from neuraxis.sandbox.process.run import probe
from policy_talk import Talk

HAS_SANDBOX = any(kind.works for kind in probe())
URL = "https://a.example/one"
OTHER = "https://a.example/two"
ZIP = "import zipfile\nzipfile.ZipFile('site.zip', 'w').write('in.txt')"
READ = {"tool": "file_reader", "file_path": "in.txt"}


def write(path: str, text: str) -> dict[str, Any]:
    """A call that writes a file."""
    return {"tool": "FILEWRITER", "file_path": path, "contents": text}


def run(path: str) -> dict[str, Any]:
    """A call that runs a script."""
    return {"tool": "EXECUTE_PYTHON_FILE", "file_path": path}


@pytest.mark.skipif(not HAS_SANDBOX, reason="no sandbox works here")
def test_a_zip_makes_no_later_script_foreign(tmp_path: Path) -> None:
    """Python imports from an archive only where a script names it."""
    (tmp_path / "in.txt").write_text("hello")
    talk = Talk(tmp_path, lambda asked: True)
    talk.ask("Zip in.txt as site.zip", [write("pack.py", ZIP), run("pack.py")])
    assert (tmp_path / "site.zip").exists()
    asked = talk.ask("Write add.py", [write("add.py", "print(1)"), run("add.py")])
    assert asked == []


@pytest.mark.parametrize(
    ("path", "request_text", "is_one"),
    [
        ("letter.docx", "", True),
        ("talk.pptx", "", True),
        ("terms.ics", "", True),
        ("hobby/birds.svg", "a chart in hobby/birds.svg", True),
        ("birds.svg", "draw birds.csv", True),
        ("birds.svg", "draw my birds", False),
        ("site.zip", "zip it as site.zip", True),
        ("site.zip", "zip the site", False),
        ("page.html", "make page.html", False),
        ("letter.docm", "make letter.docm", False),
    ],
)
def test_what_is_a_document(path: str, request_text: str, is_one: bool) -> None:
    """Office files are; pictures with code in them and archives if they are named."""
    assert is_document(path, (request_text,)) is is_one


@pytest.mark.parametrize("urls", [[OTHER, URL], [URL, URL + "#a", URL]])
def test_a_users_address_in_another_order_is_told(
    tmp_path: Path, urls: list[str]
) -> None:
    """The question named a page as the one who chose it, beside "your words"."""

    @command(
        effects={"kind": "read", "others_write": True, "public": True},
        sends_out=["url"],
    )
    def other_page(url: str) -> str:
        """Open a page in another way."""
        return "a page"

    (tmp_path / "in.txt").write_text("hello")
    talk = Talk(tmp_path, plugins=[other_page])
    calls = [
        [{"tool": tool, "url": url}]
        for tool, url in zip(("open_page", "other_page") * 2, urls, strict=False)
    ]
    asked = talk.ask(f"Read in.txt, compare {URL} and {OTHER}", [READ], *calls)
    assert asked
    reasons = [one.reason for one in asked]
    assert all(
        ("the user wrote this address, but it was used before" in reason)
        is ("#a" not in str(one.call))
        for one, reason in zip(asked, reasons, strict=True)
    )


def test_a_question_about_sending_names_all_that_goes(tmp_path: Path) -> None:
    """It named the first parameter only."""

    @command(effects="once", sends_out=["url", "fields"])
    def send_form(url: str, fields: dict[str, str]) -> str:
        """Send a form."""
        return "ok"

    (tmp_path / "in.txt").write_text("hello")
    call = {"tool": "send_form", "url": "https://b.example/", "fields": {"a": "hello"}}
    (asked,) = Talk(tmp_path, plugins=[send_form]).ask(
        "Read in.txt and sign me up", [READ], [call]
    )
    assert asked.reason.startswith('this would send "url", "fields" to others; ')


@pytest.mark.parametrize(
    ("request_text", "path", "is_free"),
    [
        (
            "Read in.txt, save a reminder beside the members list",
            "club/reminder.md",
            True,
        ),
        ("Read in.txt, save a reminder", "club/reminder.md", False),
        ("Read in.txt and write the next invoice", "shop/invoices/next.txt", True),
        ("Read in.txt and write the next one", "shop/invoices/next.txt", False),
        ("Read in.txt and write the next invoice", "new/invoices/next.txt", False),
        ("Read in.txt and count with a script", "scripts/count.py", True),
        ("Read in.txt and count with a script", "tools/count.py", False),
        ("Read in.txt and count with a script", "script/count.py", False),
        ("Read in.txt and count the pages with a script", "pages/count.py", False),
        ("Read in.txt and count the tests with a script", "tests/count.py", False),
    ],
)
def test_a_new_file_in_a_folder_that_is_meant_is_free(
    tmp_path: Path, request_text: str, path: str, is_free: bool
) -> None:
    """Its last part, or a file in it, says where as a person does."""
    for folder in ("club", "shop/invoices", "scripts", "tools", "pages", "tests"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "club" / "members-list.csv").write_text("a")
    (tmp_path / "in.txt").write_text("hello")
    asked = Talk(tmp_path).ask(request_text, [READ], [write(path, "x = 1")])
    assert (not asked) is is_free


@pytest.mark.parametrize("code", ["from scripts import a", "glob('scripts/*.py')"])
def test_a_script_in_a_folder_that_code_names_is_asked_about(
    tmp_path: Path, code: str
) -> None:
    """It may load each file there."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "in.txt").write_text("hello")
    (tmp_path / "tool").write_text(code)
    call = write("scripts/count.py", "x = 1")
    asked = Talk(tmp_path).ask("Read in.txt and count with a script", [READ], [call])
    assert len(asked) == 1


@pytest.mark.skipif(not HAS_SANDBOX, reason="no sandbox works here")
@pytest.mark.parametrize("other", [None, "old/dice.py", "old/Dice.py"])
def test_a_script_is_run_by_a_name_that_no_other_file_has(
    tmp_path: Path, other: str | None
) -> None:
    """ "Run dice.py" meant `scripts/dice.py`, and was asked about."""
    for path in ("scripts/dice.py", *((other,) if other else ())):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text("print(6)")
    (tmp_path / "in.txt").write_text("hello")
    talk = Talk(tmp_path)
    asked = talk.ask("Read in.txt and run dice.py", [READ], [run("scripts/dice.py")])
    assert bool(asked) is bool(other)
