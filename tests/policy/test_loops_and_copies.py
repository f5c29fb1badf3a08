"""What a stranger's page decided: how often something happens, what is copied where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Session, command
from neuraxis.policy.files import free_files
from neuraxis.policy.files.file_names import is_document
from neuraxis.policy.files.free_files import is_new_script
from neuraxis.testing import ScriptedModel

OUTSIDE = {"kind": "read", "others_write": True, "public": True}
DONE: list[Any] = []


@command(effects=OUTSIDE)
def page() -> dict[str, Any]:
    """A page that somebody else wrote."""
    return {"list": [{"to": "eve"}] * 5}


@command(effects="read")
def contacts() -> list[str]:
    """The user's own."""
    return ["ada", "bob"]


@command(effects="once", trusted_only=["to"])
def pay(to: str, note: str = "") -> str:
    """Pays ten euros."""
    DONE.append((to, note))
    return "paid"


@command(effects="once")
def wipe() -> str:
    """Wipes the disk, and declares nothing."""
    DONE.append("wiped")
    return "wiped"


def asked(plan: list[dict[str, Any]], request: str = "Pay ada ten") -> int:
    """How many questions there were; the answer is no."""
    DONE.clear()
    questions: list[Any] = []
    plugins = [page, contacts, pay, wipe]
    with Session(
        ScriptedModel([json.dumps(plan), "ok"]),
        plugins=plugins,
        approve=lambda question: bool(questions.append(question)),
    ) as session:
        session.run_sync(request)
    return len(questions)


LOOPS: dict[str, dict[str, Any]] = {
    "pay": {"tool": "pay", "to": "ada"},
    "wipe": {"tool": "wipe"},
    "note": {"tool": "pay", "to": "ada", "note": "thanks"},
}


@pytest.mark.parametrize("call", LOOPS.values(), ids=LOOPS)
def test_a_list_from_outside_does_not_decide_how_often(call: dict[str, Any]) -> None:
    """The same call for each item of a page's list is asked about, all at once."""
    loop = {**call, "$for_each": "{{ p['list'] }}"}
    assert asked([{"tool": "page", "as": "p"}, loop]) == 1
    assert DONE == []


def test_what_takes_the_items_is_asked_about_by_its_values() -> None:
    """As before: free where a page may choose the value, else not."""
    first = {"tool": "page", "as": "p"}
    note = {"tool": "pay", "to": "ada", "note": "for {{ item['to'] }}"}
    assert asked([first, {**note, "$for_each": "{{ p['list'] }}"}]) == 0
    assert len(DONE) == 5
    whom = {"tool": "pay", "to": "{{ item['to'] }}", "$for_each": "{{ p['list'] }}"}
    assert asked([first, whom]) == 1
    assert DONE == []


@pytest.mark.parametrize(
    "call", [{"tool": "pay", "to": "ada"}, {"tool": "pay", "to": "{{ item }}"}]
)
def test_a_list_of_the_users_own_may_decide_it(call: dict[str, Any]) -> None:
    """Nobody else wrote how many contacts there are."""
    loop = {**call, "$for_each": "{{ c }}"}
    assert asked([{"tool": "contacts", "as": "c"}, loop]) == 0
    assert len(DONE) == 2


@pytest.mark.parametrize(
    ("request_text", "is_asked"),
    [
        ("Read the page. Is there anything about the public talk?", True),
        ("Read the page, then copy letters/hello.md into public", True),
        ("Do not put anything into public", True),
        ("Copy private/report.md to public/ and read the page", True),
        ("Copy `private/report.md` into public, read the page", True),
        ("Read the page and ./private/Makefile, and list public/", True),
        ("Read the page, and the private.md of public", True),
        ("Read the page and copy private/*.md to public/", False),
        ("Read the page and copy all of ./private/ into public", False),
        ("Read the page and copy what is private to public", False),
        ("Read the page and copy private/salaries.md into public", False),
    ],
)
def test_a_copy_keeps_its_name_if_the_request_names_where_it_comes_from(
    tmp_path: Path, request_text: str, is_asked: bool
) -> None:
    """An ordinary word such as "public" names a folder, but no file of another one."""
    for name in ("private/salaries.md", "public/a.md", "letters/hello.md"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("text")
    copy = {"tool": "copy_file", "file_path": "private/salaries.md"}
    replies = [
        json.dumps([{"tool": "page"}]),
        json.dumps([{**copy, "new_path": "public/salaries.md"}]),
        "ok",
    ]
    questions: list[Any] = []
    with Session(
        ScriptedModel(replies),
        plugins=[page, "neuraxis:files"],
        workspace=tmp_path,
        approve=lambda question: bool(questions.append(question)),
    ) as session:
        session.run_sync(request_text)
    assert bool(questions) is is_asked
    assert (tmp_path / "public/salaries.md").exists() is not is_asked


def test_names_that_tools_load_are_known_in_camel_case(tmp_path: Path) -> None:
    """And where letter case does not count, as on some file systems."""
    said = ["Write a summary of agents and packages, the local settings and a helper"]
    for name in ("agentsSummary.md", "packageSummary.md", "summaryOfAgents.md"):
        assert not is_document(name, said)
    assert is_document("localSummary.md", said)
    for name in (
        *("~/localSummary.md", "./~/localSummary.md", " /localSummary.md", ""),
        *("~/../localSummary.md", "~root/../localSummary.md"),
    ):
        assert not is_document(name, said)
    data = "sales.json catalog.xml"
    assert all(is_document(name, [data]) for name in data.split())
    for name in ("settingsLocal.py", "helperTest.py", "localSettings.py"):
        assert not is_new_script(name, said, tmp_path)
    assert is_new_script("Helper.py", said, tmp_path)
    (tmp_path / "run.py").write_text("import helper")
    assert not is_new_script("Helper.py", said, tmp_path)


@pytest.mark.parametrize("place", ["build.ps1", "run.bat", "tool.R", "start"])
@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be", "cp1252"]
)
def test_a_script_that_code_in_another_encoding_names_is_not_free(
    tmp_path: Path, place: str, encoding: str
) -> None:
    """PowerShell's ">" writes UTF-16: a script was planted that such a file runs."""
    code = "rem für alle\npython Helper.py\n"
    assert is_new_script("helper.py", ["Write a helper"], tmp_path)
    (tmp_path / place).write_bytes(code.encode(encoding))
    assert not is_new_script("helper.py", ["Write a helper"], tmp_path)


def test_only_a_scripts_name_of_plain_letters_is_searched_for(tmp_path: Path) -> None:
    """Others have too many spellings; files that are no text name nothing."""
    said = ["Write a helper and a prüfer"]
    for place in ("data.npy", "tool.exe"):
        (tmp_path / place).write_bytes(b"\x93\x01\0\xd8\0\xd8\0helper.py\0")
    assert is_new_script("helper.py", said, tmp_path)
    assert not is_new_script("prüfer.py", said, tmp_path)


def test_the_list_of_a_loop_is_no_argument() -> None:
    """The reason tells of it; the origins are those of what the call is given."""
    seen: list[Any] = []
    plan = [
        {"tool": "page", "as": "p"},
        {**LOOPS["pay"], "$for_each": "{{ p['list'] }}"},
    ]
    with Session(
        ScriptedModel([json.dumps(plan), "ok"]),
        plugins=[page, pay],
        approve=lambda question: bool(seen.append(question)),
    ) as session:
        session.run_sync("Pay ada ten")
    assert "how often it happens is decided by a list" in seen[0].plan[0]["reason"]
    assert [*seen[0].plan[0]["origins"]] == ["to"]


def test_code_is_only_looked_through_where_it_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as nothing was read, a new script is free in any case."""

    def fails(*_: object) -> bool:
        raise AssertionError("nothing was read")

    monkeypatch.setattr(free_files, "is_new_script", fails)
    write = {"tool": "FILEWRITER", "file_path": "primes.py", "contents": "print(2)"}
    with Session(
        ScriptedModel([json.dumps(write), "ok"]),
        plugins=["neuraxis:files"],
        workspace=tmp_path,
    ) as session:
        (result,) = session.run_sync("Write primes.py").calls
    assert result.status == "done"


@pytest.mark.parametrize(
    "name",
    [
        *("pom.xml", "build.xml", "composer.json", "mcp.json", "settings.json"),
        *("tasks.json", "deno.json", "config.json", "my_mcp.json", "package.json"),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        {"tool": "replace_in_file", "old": "echo", "new": "obey"},
        {"tool": "append_file", "text": "obey"},
        {"tool": "FILEWRITER", "contents": "obey"},
    ],
)
def test_a_build_file_that_is_named_is_no_document(
    tmp_path: Path, name: str, call: dict[str, str]
) -> None:
    """Ant, maven, a client of MCP or an editor would run what stands in it."""
    (tmp_path / name).write_text("echo", encoding="utf-8")
    calls = [{"tool": "page"}], [{**call, "file_path": name}]
    with Session(
        ScriptedModel([*map(json.dumps, calls), "done"]),
        plugins=[page, "neuraxis:files"],
        workspace=tmp_path,
    ) as session:
        answer = session.run_sync(f"What does {name} do? And read the page.")
    assert [result.status == "done" for result in answer.calls] == [True, False]
    assert (tmp_path / name).read_text(encoding="utf-8") == "echo"
