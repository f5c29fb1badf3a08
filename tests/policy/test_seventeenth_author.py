"""Findings of the seventeenth author of everyday requests."""

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


@pytest.mark.skipif(not HAS_SANDBOX, reason="no sandbox works here")
def test_the_offer_that_sounds_wider_is(tmp_path: Path) -> None:
    """A yes "also on your own files" did not cover one that names no files."""
    (tmp_path / "in.txt").write_text("hello")
    (tmp_path / "own.csv").write_text("a\n1\n")
    change = "open('own.csv', 'a').write('2\\n')"
    talk = Talk(tmp_path, lambda asked: asked.offers[-1])
    first = [write("add_row.py", change), run("add_row.py")]
    asked = talk.ask("Read in.txt and add a row to own.csv", [READ], first)
    assert asked[-1].offers[-1].endswith(", also on your own files")
    copy = [{**READ, "as": "text"}, write("copied.py", "{{ text }}")]
    asked = talk.ask("Read in.txt and copy it", [*copy, run("copied.py")])
    assert (tmp_path / "copied.py").exists()
    assert "python_file" not in [one.call["plugin"] for one in asked]  # type: ignore[index,call-overload]


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
