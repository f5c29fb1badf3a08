"""Read one clause for one tool: lead words and remaining tokens."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from neuraxis.models.local.planner.catalogue import Slot, Tool
from neuraxis.models.local.planner.earlier import Step
from neuraxis.models.local.planner.language import Language
from neuraxis.models.local.planner.tokens import Clause, Token, body_start
from neuraxis.specs import Json

OPTIONAL = 0.9
"""An optional parameter is given only a candidate at least as good."""
MOST = 40

LONG = frozenset({"query", "content", "text"})
"""Kinds whose values may be whole sentences."""
SPANNED = {
    "path": "path",
    "url": "url",
    "email": "email",
    "expression": "expression",
    "date": "date",
    "time": "time",
    "integer": "number",
    "number": "number",
}


class Candidate(Struct, frozen=True, kw_only=True):
    """Candidate value, its tokens with lead words, and its score."""

    value: Json
    tokens: frozenset[int]
    score: float
    kind: str = "text"
    """`text`, `reference`, `carried` or `default`."""


class Reader(Struct, frozen=True, kw_only=True, eq=False):
    """One clause read for one tool."""

    tool: Tool
    clause: Clause
    steps: Sequence[Step]
    language: Language
    body: int
    """The first token behind the verb."""

    @classmethod
    def of(
        cls, tool: Tool, clause: Clause, steps: Sequence[Step], language: Language
    ) -> Reader:
        """A reader of a clause for a tool."""
        return cls(
            tool=tool,
            clause=clause,
            steps=steps,
            language=language,
            body=_body(tool, clause, language),
        )

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The clause's tokens."""
        return self.clause.tokens

    def left(self, used: frozenset[int]) -> tuple[int, ...]:
        """Tokens with matter that are not taken."""
        return tuple(
            index
            for index, token in enumerate(self.tokens)
            if index not in used and self._weight(index, token)
        )

    def cost(self, used: frozenset[int]) -> float:
        """What leaving the other tokens over costs."""
        return sum(
            self._weight(index, token)
            for index, token in enumerate(self.tokens)
            if index not in used
        )

    def _weight(self, index: int, token: Token) -> float:
        if token.span is not None:
            return 0.9 if token.span.kinds - {"number", "date", "time"} else 0.45
        if not token.fold or index < self.body:
            return 0.0
        if token.low in self.language.function_words:
            return 0.02
        if token.fold in self.tool.noun_words or self.told(token.fold):
            return 0.04
        return 0.22

    def told(self, fold: str) -> bool:
        """A word of the tool itself, as its examples and names show."""
        return self.tool.weights.get(fold, 0.0) >= 0.5

    def lead(self, first: int) -> tuple[str, frozenset[int]]:
        """Return the word before a token, and the tokens between."""
        index = first - 1
        between: set[int] = set()
        while index >= self.body and self.is_determiner(index):
            between.add(index)
            index -= 1
        if index < self.body:
            return "", frozenset(between)
        span = self.tokens[index].span
        if span is not None:
            return f"<{min(span.kinds)}>", frozenset(between)
        if self.is_boundary(index) or self.named(self.tokens[index]):
            between.add(index)
        return self.tokens[index].low, frozenset(between)

    def is_determiner(self, index: int) -> bool:
        """See `Clause.is_determiner`."""
        return self.clause.is_determiner(index, self.language)

    def is_conjunction(self, index: int) -> bool:
        """See `Clause.is_conjunction`."""
        return self.clause.is_conjunction(index, self.language)

    def is_boundary(self, index: int) -> bool:
        """Whether a value may begin behind this token."""
        token = self.tokens[index]
        return (
            (not token.fold and token.span is None)
            or token.low in self.language.prepositions
            or self.is_conjunction(index)
            or (token.span is not None and not token.span.quoted)
        )

    def cue(self, slot: Slot, first: int, last: int) -> float:
        """How well the words around a candidate announce this parameter."""
        language = self.language
        low, _ = self.lead(first)
        score = 0.0
        known = language.table("cues").get(slot.kind, ())
        if low and (low in slot.name_words or language.fold(low) in slot.name_words):
            score = 1.6
        elif low in slot.sides:
            score = 1.4
        elif low in slot.cues:
            score = 1.3
        elif low in known:
            score = 0.7
        elif low in language.words("infinitives") and self._verb_at(first):
            score = 0.9 if slot.kind in ("content", "title", "text") else -0.5
        elif low == "":
            score = 0.0
        elif low in language.prepositions:
            score = -0.5 if slot.kind != "text" else -0.1
        if low and any(
            low in other.sides or low in other.name_words
            for other in self.tool.slots
            if other is not slot and low not in slot.sides
        ):
            score -= 0.6
        # "subject to Hello": the name, a small word, the value.
        back = first - 2
        if back >= self.body and self.tokens[back].low in slot.name_words:
            score = max(score, 1.2)
        if last + 1 < len(self.tokens):
            behind = self.tokens[last + 1].fold
            if behind and behind in slot.after:
                score += 0.5
        return score

    def _verb_at(self, index: int) -> bool:
        return self.tokens[index].fold in self.language.verbs or bool(
            self.tokens[index].fold
            and index + 1 < len(self.tokens)
            and self.tokens[index + 1].low in self.language.determiners
        )

    def text(self, first: int, last: int) -> str:
        """The words from one token to another, as they were written."""
        span = self.tokens[first].span
        if first == last and span is not None:
            return span.value
        return self.clause.text[self.tokens[first].start : self.tokens[last].end]

    def named(self, token: Token) -> bool:
        """Check whether a word names the tool or a parameter."""
        return bool(token.fold) and (
            token.fold in self.tool.noun_words
            or self.told(token.fold)
            or any(token.low in slot.name_words for slot in self.tool.slots)
        )


def _body(tool: Tool, clause: Clause, language: Language) -> int:
    """Return where values may begin, behind the verb."""
    index = body_start(clause, language)
    if not index and len(clause.tokens) > 1:
        fold = clause.tokens[0].fold
        heads = {sample.clause.head for sample in tool.samples}
        if fold and (fold in heads or fold in tool.noun_words):
            return 1
    return index
