"""Contents and names of new files."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from neuraxis.models.offline import english
from neuraxis.models.offline.fill import Parse
from neuraxis.models.offline.tokens import Token

_DOING = (ast.Call, ast.Import, ast.ImportFrom, ast.Assign, ast.FunctionDef)


def programmed(parse: Parse, tokens: Sequence[Token]) -> Parse:
    """Return the reading with code as a program's contents.

    "A script that prints 'x'" is `print('x')`; other programs only a model can write.
    """
    slots = parse.tool.slots
    paths = [s.name for s in slots if s.schema.get("x-names-file") == "write"]
    texts = [s.name for s in slots if s.required and s.long and s.kind == "text"]
    if len(paths) != 1 or len(texts) != 1:
        return parse
    given, left = dict(parse.arguments), parse.left
    (path,), (text,) = paths, texts
    lows = {token.low for token in tokens if token.kind == "word"}
    program = bool(lows & english.PROGRAM) or str(given.get(path)).endswith(".py")
    if path not in given:
        named = [a.low for a, b in pairwise(tokens) if b.low == "file"]
        endings = [english.ENDINGS[low] for low in named if low in english.ENDINGS]
        if not endings and not program:
            return parse
        given[path] = "script.py" if program else f"result.{endings[0]}"
    written = str(given.get(text, "{{"))
    if program and "{{" not in written and not _acts(written):
        if lows & english.PRINTING:
            given[text] = f"print({written!r})\n"
        else:
            left = (*left, "program")
    missing = tuple([name for name in parse.missing if name != path])
    return replace(parse, arguments=given, missing=missing, left=left)


def _acts(code: str) -> bool:
    """Whether a text is Python that does something."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, _DOING) for node in ast.walk(tree))
