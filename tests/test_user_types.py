"""What a user's own type checker finds in a small program."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from dataclasses import dataclass

from neuraxis import Answer, Context, Options, Session, agent, command


@dataclass
class Shop:
    clerk: str


@dataclass
class Invoice:
    number: str
    total: float


@command(effects="read")
def clerk(context: Context[Shop]) -> str:
    "Who is at work."
    return context.deps.clerk


research = agent("research", "Finds out.", model="local:", effects="read")
session = Session("local:", plugins=[clerk, research], output=Invoice, deps=Shop,
                  options=Options(on_error="continue"))
answer = session.run_sync("read it", deps=Shop("Ada"))
number: str = answer.output.number
if answer.outcome == "waiting":
    print(session.pending())


async def main() -> Answer[Invoice]:
    return await session.run("read it", deps=Shop("Ada"))
"""
WRONG = {
    '@command(effects="reads")\ndef f() -> None:\n    "F."': "reads",
    'agent("a", "b", modl="local:")': "modl",
    'answer.outcome == "done"': "no overlap",
    "answer.output.totl": "totl",
    "def g(context: Context[Shop]) -> int:\n    return context.deps.age": "age",
    "Session(plugin=[clerk])": "plugin",
    'Options(on_error="carry_on")': "carry_on",
}


def test_N11_a_right_program_passes_and_each_slip_is_found(tmp_path: Path) -> None:
    """By pyright in its strict mode, on the package as it is installed."""
    pytest.importorskip("pyright")
    root = Path(__file__).resolve().parent.parent
    (tmp_path / "right.py").write_text(PROGRAM, encoding="utf-8")
    for number, line in enumerate(WRONG):
        text = f"{PROGRAM}\n\n{line}\n"
        (tmp_path / f"wrong{number}.py").write_text(text, encoding="utf-8")
    for example in ("batch", "support_bot", "typed_extraction"):
        text = (root / "examples" / f"{example}.py").read_text(encoding="utf-8")
        (tmp_path / f"{example}.py").write_text(text, encoding="utf-8")
    settings = {
        "typeCheckingMode": "strict",
        "extraPaths": [str(root / "src")],
        "reportUnusedExpression": False,
    }
    file = tmp_path / "pyrightconfig.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "-p", str(file),
         "--pythonpath", sys.executable],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    found: dict[str, str] = {}
    for item in json.loads(done.stdout)["generalDiagnostics"]:
        name = Path(item["file"]).name
        found[name] = found.get(name, "") + item["message"]
    assert "right.py" not in found, found["right.py"]
    for number, (line, word) in enumerate(WRONG.items()):
        assert word in found.pop(f"wrong{number}.py", ""), line
    assert found == {}  # the examples


def test_N11_every_public_class_documents_its_fields() -> None:
    """`help` of a class explains each field that a user may read or set."""
    import neuraxis

    for name in neuraxis.__all__:
        made = getattr(neuraxis, name)
        fields = getattr(made, "__struct_fields__", ())
        if not fields:
            continue
        source = Path(sys.modules[made.__module__].__file__ or "").read_text("utf-8")
        body = source[source.index(f"class {name}(") :]
        body = body[: body.find("\nclass ", 5)] if "\nclass " in body[5:] else body
        doc = inspect.cleandoc(made.__doc__ or "")  # 3.13 cleans it itself
        for field in fields:
            own = body.partition(f"\n    {field}: ")[2]
            after = own.partition("\n    ")[2] if own else ""
            said = f"`{field}`" in doc or f"\n    {field}: " in f"\n{doc}"
            is_told = after.lstrip(" )]").startswith('"""')
            assert said or is_told, f"{name}.{field}"
