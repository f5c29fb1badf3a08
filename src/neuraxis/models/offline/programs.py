"""Contents of new files: a program is code, a file without a name gets one."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from msgspec.structs import replace

from neuraxis.models.offline import english
from neuraxis.models.offline.fill import Parse
from neuraxis.models.offline.tokens import Token

_DOING = (ast.Call, ast.Import, ast.ImportFrom, ast.Assign, ast.FunctionDef)


def programmed(parse: Parse, tokens: Sequence[Token]) -> Parse:
    """Return the reading with code as a program's contents, or short of it.

    "A script that prints 'x'" is `print('x')`; other programs only a model can write.
    """
    paths = [s for s in parse.tool.slots if s.schema.get("x-names-file") == "write"]
    texts = [s for s in parse.tool.slots if s.required and s.long and s.kind == "text"]
    if len(paths) != 1 or len(texts) != 1:
        return parse
    path, text = paths[0].name, texts[0].name
    given = dict(parse.arguments)
    lows = {token.low for token in tokens if token.kind == "word"}
    is_program = bool(lows & english.PROGRAM) or str(given.get(path, "")).endswith(".py")
    missing = [name for name in parse.missing if name != path]
    if path not in given:
        endings = [
            english.ENDINGS[token.low]
            for token, after in zip(tokens, tokens[1:], strict=False)
            if token.low in english.ENDINGS and after.low == "file"
        ]
        if not endings and not is_program:
            return parse
        given[path] = "script.py" if is_program else f"result.{endings[0]}"
    written = given.get(text)
    left = list(parse.left)
    if is_program and isinstance(written, str) and "{{" not in written and not _acts(written):
        if lows & english.PRINTING:
            given[text] = f"print({written!r})\n"
        else:
            left.append("program")
    ordered = {s.name: given[s.name] for s in parse.tool.slots if s.name in given}
    return replace(parse, arguments=ordered, missing=tuple(missing), left=tuple(left))


def _acts(code: str) -> bool:
    """Whether a text is Python that does something."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, _DOING) for node in ast.walk(tree))
