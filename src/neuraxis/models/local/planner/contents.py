"""Create file contents that a request only describes.

First the contents of a near example, then a small program made of the words of the
request, then the text model; what must be Python is parsed before it is given.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from neuraxis.models.gguf.llama import Ask, Writer
from neuraxis.models.local.planner.catalogue import Catalogue, Slot, Tool
from neuraxis.models.local.planner.language import Language
from neuraxis.models.local.planner.tokens import Clause
from neuraxis.specs import Json

NEAR = 0.75
"""Likeness from which an example's contents are taken for the clause's."""
_PYTHON = ".py"


class Made(Struct, frozen=True, kw_only=True):
    """A made content and where it came from."""

    text: str
    source: str
    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """The example's arguments, where it is an example's."""


def is_code_wish(clause: Clause, path: str, language: Language) -> bool:
    """Whether the clause asks for a program rather than gives a text."""
    words = {token.low for token in clause.tokens if token.span is None}
    folded = {token.fold for token in clause.tokens if token.span is None}
    wanted = {language.fold(word) for word in language.words("code_words")}
    if wanted & folded:
        return True
    named = set(language.words("code_languages")) & words
    if named and not path.endswith((".txt", ".md")):
        return True
    return path.endswith(_PYTHON) and bool(set(language.words("print_words")) & words)


def wants_run(clause: Clause, language: Language) -> bool:
    """Whether the clause wants what a program shows, not the program."""
    groups = language.verbs.get(clause.head, frozenset[str]())
    return is_code_wish(clause, "", language) and not groups & {"=write", "=make"}


def is_program(text: str) -> bool:
    """Whether a text is Python that does something."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    idle = (ast.Name, ast.Constant, ast.Tuple, ast.Attribute)
    return any(
        not (isinstance(node, ast.Expr) and isinstance(node.value, idle))
        for node in tree.body
    )


def example(
    clause: Clause, tool: Tool, slot: Slot, catalogue: Catalogue, *, code: bool
) -> Made | None:
    """The contents of the nearest example, if it is near enough."""
    language = catalogue.language
    found = _matter(clause, language)
    best: Made | None = None
    most = NEAR
    for sample in tool.samples:
        value = sample.arguments.get(slot.name)
        if not isinstance(value, str) or "{{" in value:
            continue
        if code and not is_program(value):
            continue
        other = _matter(sample.clause, language)
        likeness = len(found & other) / max(1, len(found | other))
        if likeness >= most:
            most = likeness
            best = Made(
                text=value,
                source=f"example, likeness {most:.2f}",
                arguments=sample.arguments,
            )
    return best


def _matter(clause: Clause, language: Language) -> frozenset[str]:
    """Return the words of the wanted content, without verbs of writing."""
    idle = {language.fold(word) for word in language.words("code_words")}
    idle |= set(language.words("code_languages")) | {clause.head}
    return frozenset(
        token.fold if token.span is None else token.span.value.casefold()
        for token in clause.tokens
        if token.low not in language.function_words
        and token.fold not in idle
        and (token.fold or token.span is not None)
        and not (token.span is not None and "path" in token.span.kinds)
    )


def printed(clause: Clause, language: Language) -> str | None:
    """What a program is asked to show, word for word."""
    quoted = [
        span.value for span in clause.spans if span.quoted and not span.kinds & {"path"}
    ]
    if quoted:
        return quoted[0]
    words = "|".join(re.escape(word) for word in language.words("print_words"))
    found = re.search(rf"\b(?:{words})\b\s+(.+)$", clause.text, re.IGNORECASE)
    if not found:
        return None
    text = found.group(1)
    paths = [span.value for span in clause.spans if "path" in span.kinds]
    for path in paths:
        text = re.sub(rf"\s*\b\w+\s+{re.escape(path)}.*$", "", text)
    return text.strip(" .!") or None


def _plainly(text: str, language: Language) -> str | None:
    """Return the text if it is meant literally."""
    kinds = "|".join(re.escape(word) for word in language.words("text_words"))
    found = re.match(rf"(?:(?:the|a) )?(?:{kinds})s? (.+)$", text, re.IGNORECASE)
    if found:
        return found.group(1).strip(" .!")
    words = text.split()
    worked = {language.fold(word) for word in language.words("worked_words")}
    if words[0].casefold() in language.determiners - {"my", "your", "our"}:
        return None
    if any(language.fold(word) in worked for word in words):
        return None
    return None if any(c.isdigit() for c in text) else text


def small_program(clause: Clause, language: Language) -> Made | None:
    """A program for the few things that words alone settle."""
    for pattern, program in language.table("programs").items():
        if found := re.search(pattern, clause.text, re.IGNORECASE):
            values = [part or "" for part in found.groups()]
            text = str(program)
            for number, value in enumerate(values, 1):
                text = text.replace(f"${number}", value.replace(",", ""))
            if is_program(text):
                return Made(text=text.rstrip("\n") + "\n", source="rule")
    sums = [span.value for span in clause.spans if "expression" in span.kinds]
    if len(sums) == 1 and is_program(f"print({sums[0]})"):
        return Made(text=f"print({sums[0]})\n", source="rule")
    shown = printed(clause, language)
    if shown is None:
        return None
    if plain := _plainly(shown, language):
        return Made(text=f"print({plain!r})\n", source="rule")
    if re.fullmatch(r"[\d\s.+*/()%-]+", shown) and is_program(f"print({shown})"):
        return Made(text=f"print({shown})\n", source="rule")
    return None


def literal_program(clause: Clause, language: Language) -> str:
    """A program that shows the words of the request: the last resort."""
    return f"print({(printed(clause, language) or clause.text)!r})\n"


async def written_program(
    clause: Clause, writer: Writer | None, language: Language
) -> Made:
    """Return a checked program by the text model, or a fallback."""
    if writer is not None:
        ask = Ask(
            prompt=program_prompt(clause.text),
            constant=len(PROGRAMS),
            max_tokens=160,
            stop=("```", "<|im_end|>"),
        )
        text = (await writer.write(ask)).text
        code = text.strip("\n").rstrip() + "\n"
        if is_program(code) and len(code) > 8:
            return Made(text=code, source="model")
    return Made(text=literal_program(clause, language), source="literal")


_SHOTS: Sequence[tuple[str, str]] = (
    (
        "Write a python script that prints the numbers from 1 to 3",
        "for number in range(1, 4):\n    print(number)",
    ),
    (
        "Create a program with a function that adds two numbers",
        "def add(a, b):\n    return a + b\n\n\nprint(add(2, 3))",
    ),
    ("Write code that shows the length of the word tree", "print(len('tree'))"),
)


PROGRAMS = "".join(f"# {q}\n```python\n{a}\n```\n\n" for q, a in _SHOTS)
"""How programs look, which stands before the question for another."""


def program_prompt(text: str) -> str:
    """The programs of `PROGRAMS`, and the question for another."""
    return f"{PROGRAMS}# {text}\n```python\n"


async def written_text(clause: Clause, writer: Writer | None) -> Made | None:
    """A text by the model ("a poem about the sea")."""
    if writer is None:
        return None
    ask = Ask(
        prompt=chat_prompt(f"{clause.text}. Give only the text itself."),
        constant=len(CHAT),
        max_tokens=160,
        stop=("<|im_end|>",),
        repeat_penalty=1.1,
    )
    text = (await writer.write(ask)).text.strip()
    return Made(text=text + "\n", source="model") if text else None


CHAT = (
    "<|im_start|>system\nYou are a helpful assistant. Answer in one or two short "
    "sentences.<|im_end|>\n<|im_start|>user\n"
)
"""How SmolLM2's chat form of one message begins."""


def chat_prompt(text: str) -> str:
    """SmolLM2's chat form of one message."""
    for mark in ("<|im_start|>", "<|im_end|>", "<|endoftext|>"):
        text = text.replace(mark, "")
    return f"{CHAT}{text}<|im_end|>\n<|im_start|>assistant\n"
