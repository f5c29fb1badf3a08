"""Candidates for one parameter in one clause, each with the tokens it takes.

Typed parameters take typed spans; free texts are the pieces between the words that
lead up to a value. How well a candidate fits is read from the examples first (the
word before and behind), then from the language's rules, then from its shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neuraxis.models.local import references, values
from neuraxis.models.local.catalogue import Slot, Tool
from neuraxis.models.local.tokens import Clause, Token
from neuraxis.models.local.earlier import Step
from neuraxis.models.local.language import Language
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A value, the tokens it takes (with the words that lead up to it), how good."""

    value: Json
    tokens: frozenset[int]
    score: float
    kind: str = "text"
    """`text`, `reference`, `carried` or `default`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reader:
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
        return cls(
            tool=tool,
            clause=clause,
            steps=steps,
            language=language,
            body=body_start(clause, language),
        )

    @property
    def tokens(self) -> tuple[Token, ...]:
        return self.clause.tokens

    # --- what is left over -----------------------------------------------------

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
        if token.fold in self.tool.noun_words or self._told(token.fold):
            return 0.04
        return 0.22

    def _told(self, fold: str) -> bool:
        """A word of the tool itself, as its examples and names show."""
        return self.tool.weights.get(fold, 0.0) >= 0.5

    # --- candidates ------------------------------------------------------------

    def candidates(self, slot: Slot) -> list[Candidate]:
        """All values that the clause may give to a parameter, the best first."""
        found: list[Candidate] = []
        match slot.kind:
            case "enum":
                found += self._members(slot)
            case "boolean":
                found += self._switches(slot)
            case "datetime":
                found += self._moments(slot)
            case "object":
                return []
            case kind if kind in SPANNED:
                found += self._spans(slot, SPANNED[kind])
            case _:
                found += self._texts(slot)
        if (
            slot.kind in ("date", "time", "datetime")
            and not found
            and slot.required
            and not slot.schema.get("format")
        ):
            found += self._texts(slot)
        found += references.candidates(self, slot)
        found.sort(key=lambda item: -item.score)
        return found[:MOST]

    def lead(self, first: int) -> tuple[str, frozenset[int]]:
        """The word before a token ("" behind the verb), and the tokens between."""
        index = first - 1
        between: set[int] = set()
        while index >= self.body and self._is_determiner(index):
            between.add(index)
            index -= 1
        if index < self.body:
            return "", frozenset(between)
        span = self.tokens[index].span
        if span is not None:
            return f"<{min(span.kinds)}>", frozenset(between)
        if self._is_boundary(index) or self._named(self.tokens[index]):
            between.add(index)
        return self.tokens[index].low, frozenset(between)

    def _is_determiner(self, index: int) -> bool:
        return self.clause.is_determiner(index, self.language)

    def _is_conjunction(self, index: int) -> bool:
        return self.clause.is_conjunction(index, self.language)

    def _is_boundary(self, index: int) -> bool:
        token = self.tokens[index]
        return (
            (not token.fold and token.span is None)
            or token.low in self.language.prepositions
            or self._is_conjunction(index)
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

    def _spans(self, slot: Slot, kind: str) -> list[Candidate]:
        found: list[Candidate] = []
        order = 0
        like = [other.name for other in self.tool.slots if other.kind == slot.kind]
        rank = like.index(slot.name)
        for index, token in enumerate(self.tokens):
            if token.span is None or kind not in token.span.kinds:
                continue
            if kind == "number" and "quoted" in token.span.kinds:
                continue
            value = values.convert(token.span.value, slot, self.language)
            if isinstance(value, values.Nothing):
                continue
            score = 0.9 + 0.6 * self.cue(slot, index, index)
            if kind == "number":
                score += self._unit(slot, index) - (0.0 if slot.required else 0.35)
                score -= 0.0 if token.text[:1].isdigit() else 0.25
            score -= 0.1 * abs(order - rank)
            order += 1
            _, between = self.lead(index)
            found.append(
                Candidate(value=value, tokens=between | {index}, score=score)
            )
        return found

    def _unit(self, slot: Slot, index: int) -> float:
        """The words around a number that say what it is."""
        own = self._own_words(slot)
        names = {self.language.fold(word) for word in slot.name_words}
        if index + 1 < len(self.tokens):
            behind = self.tokens[index + 1]
            if behind.fold in slot.after:
                return 0.9
            if self._named(behind) and set(slot.name_words) & set(
                self.language.words("counting")
            ):
                return 0.9
        score = 0.0
        for step, reach in ((-1, 4), (1, 3)):
            place = index + step
            for distance in range(reach):
                if not 0 <= place < len(self.tokens):
                    break
                token = self.tokens[place]
                if token.span is not None or (
                    step > 0 and token.low in (",", *self.language.words("coordination"))
                ):
                    break
                if token.fold in own:
                    weight = 0.9 if token.fold in names else 0.5
                    score += weight - 0.1 * distance
                elif token.fold in slot.words and token.low not in (
                    self.language.function_words
                ):
                    score += 0.2
                place += step
        return min(score, 1.4)

    def _own_words(self, slot: Slot) -> frozenset[str]:
        """Words of the parameter that no other parameter of its kind has."""
        others = {
            word
            for other in self.tool.slots
            if other is not slot and other.kind in ("integer", "number")
            for word in other.words
        }
        return slot.words - others

    def _members(self, slot: Slot) -> list[Candidate]:
        found: list[Candidate] = []
        flat = [
            (index, part)
            for index, token in enumerate(self.tokens)
            for part in self._parts(token)
        ]
        folds = [part for _, part in flat]
        for words, choice in values.phrases(slot, self.language).items():
            size = len(words)
            for place in range(len(folds) - size + 1):
                if tuple(folds[place : place + size]) == words:
                    inside = frozenset(i for i, _ in flat[place : place + size])
                    first, last = min(inside), max(inside)
                    # The verb may itself be the choice ("lock the door").
                    score = 0.9 + 0.2 * size + 0.4 * self.cue(slot, first, last)
                    if size == 1 and len(words[0]) == 1:
                        score -= 1.0
                    _, between = self.lead(first)
                    found.append(
                        Candidate(value=choice, tokens=inside | between, score=score)
                    )
        return found

    def _parts(self, token: Token) -> list[str]:
        text = token.span.value if token.span is not None else token.text
        return [self.language.fold(word) for word in values.split_words(text)]

    def _switches(self, slot: Slot) -> list[Candidate]:
        found: list[Candidate] = []
        own = {
            word
            for word in slot.words
            if len(word) > 2 and word not in self.tool.noun_words
        }
        named = [i for i, token in enumerate(self.tokens) if token.fold in own]
        for index, token in enumerate(self.tokens):
            value = values.convert(token.text, slot, self.language)
            if isinstance(value, bool):
                near = any(abs(index - other) <= 2 for other in named)
                score = 0.4 + (1.0 if near else 0.0) + (0.3 if slot.required else 0.0)
                found.append(
                    Candidate(value=value, tokens=frozenset({index}), score=score)
                )
        words = [word.casefold() for word in slot.name_words]
        for index in named:
            if self.tokens[index].low in words:
                found.append(
                    Candidate(value=True, tokens=frozenset({index}), score=1.0)
                )
        return found

    def _moments(self, slot: Slot) -> list[Candidate]:
        places = [
            index
            for index, token in enumerate(self.tokens)
            if token.span is not None and token.span.kinds & {"date", "time"}
        ]
        found: list[Candidate] = []
        for first in places:
            for last in places:
                if not first <= last <= first + 3:
                    continue
                text = self.text(first, last)
                value = values.convert(text, slot, self.language)
                if not isinstance(value, values.Nothing):
                    _, between = self.lead(first)
                    found.append(
                        Candidate(
                            value=value,
                            tokens=between | frozenset(range(first, last + 1)),
                            score=0.9 + 0.5 * self.cue(slot, first, last),
                        )
                    )
        return found

    def text(self, first: int, last: int) -> str:
        """The words from one token to another, as they were written."""
        span = self.tokens[first].span
        if first == last and span is not None:
            return span.value
        return self.clause.text[self.tokens[first].start : self.tokens[last].end]

    def _texts(self, slot: Slot) -> list[Candidate]:
        found = self._runs(slot) if slot.kind == "list" else []
        firsts = self._starts()
        if slot.kind == "query" and self.body and self._is_question():
            firsts = [0, *firsts]
        for first in firsts:
            for last in self._ends(first, slot):
                text = self.text(first, last)
                value = values.convert(text, slot, self.language)
                if isinstance(value, values.Nothing):
                    continue
                _, between = self.lead(first)
                found.append(
                    Candidate(
                        value=value,
                        tokens=between | frozenset(range(first, last + 1)),
                        score=self._shape(slot, first, last)
                        + self.cue(slot, first, last),
                    )
                )
        return found

    def _is_asked_verb(self, index: int) -> bool:
        """The verb at the end of "when does X play in Y"."""
        if not self.body or self.tokens[self.body - 1].low not in self.language.words(
            "do_words"
        ):
            return False
        behind = self.tokens[index + 1] if index + 1 < len(self.tokens) else None
        return self.tokens[index].fold in self.language.verbs and (
            behind is None or behind.low in self.language.prepositions
        )

    def _is_question(self) -> bool:
        return self.tokens[0].low in self.language.words("question_words")

    def _runs(self, slot: Slot) -> list[Candidate]:
        """Typed values that stand in a row: 1, 2 and 3; 'a' and 'b'."""
        found: list[Candidate] = []
        tokens = self.tokens
        between = (",", ";", *self.language.words("coordination"))
        index = 0
        while index < len(tokens):
            if tokens[index].span is None:
                index += 1
                continue
            run = [index]
            place = index + 1
            while place < len(tokens):
                if tokens[place].span is not None:
                    run.append(place)
                elif tokens[place].low not in between:
                    break
                place += 1
            text = ", ".join(self.text(item, item) for item in run)
            value = values.convert(text, slot, self.language)
            if not isinstance(value, values.Nothing):
                _, near = self.lead(index)
                found.append(
                    Candidate(
                        value=value,
                        tokens=near | frozenset(range(index, run[-1] + 1)),
                        score=0.9 + 0.15 * len(run) + 0.5 * self.cue(slot, index, run[-1]),
                    )
                )
            index = run[-1] + 1
        return found

    def _starts(self) -> list[int]:
        found: set[int] = set()
        after_boundary = True
        for index in range(min(self.body, len(self.tokens)), len(self.tokens)):
            token = self.tokens[index]
            if after_boundary or (token.span is not None):
                found.add(index)
            skipped = self._is_determiner(index) or self._named(token)
            after_boundary = self._is_boundary(index) or (after_boundary and skipped)
        return [
            index
            for index in sorted(found)
            if (self.tokens[index].fold or self.tokens[index].span is not None)
            and self.tokens[index].low not in self.language.prepositions
        ]

    def _named(self, token: Token) -> bool:
        return bool(token.fold) and (
            token.fold in self.tool.noun_words
            or self._told(token.fold)
            or any(token.low in slot.name_words for slot in self.tool.slots)
        )

    def _ends(self, first: int, slot: Slot) -> list[int]:
        found: list[int] = []
        last_index = len(self.tokens) - 1
        for last in range(first, len(self.tokens)):
            token = self.tokens[last]
            if token.low in self.language.prepositions and last < last_index:
                continue
            if token.low in self.language.determiners or (
                last > first
                and slot.kind not in LONG
                and token.low in self.language.function_words
            ) or (
                not token.fold
                and token.span is None
                and token.low not in (")", "%", "'s", "’s")
            ):
                continue
            if last == last_index:
                found.append(last)
                continue
            behind = self.tokens[last + 1]
            if self._is_asked_verb(last + 1):
                found.append(last)
                continue
            if self._is_asked_verb(last):
                continue
            if (
                behind.span is not None
                or not behind.fold
                or behind.low in self.language.prepositions
                or behind.low in self.language.function_words
                or self._named(behind)
            ):
                found.append(last)
        return found

    def _shape(self, slot: Slot, first: int, last: int) -> float:
        """How much a piece of text looks like a value of the parameter."""
        language = self.language
        inside = self.tokens[first : last + 1]
        span = inside[0].span if len(inside) == 1 else None
        score = 0.35
        if span is not None and span.quoted:
            score += 0.9 if not span.kinds & {"path", "url", "email"} else 0.1
        elif span is not None:
            good = slot.kind == "identifier" or (
                "code" in span.kinds and slot.kind in LONG
            )
            score += 0.5 if good else -0.4
        elif any(
            token.span is not None and token.span.kinds & {"path", "url", "email"}
            for token in inside
        ):
            score -= 0.5 if slot.kind in ("query", "content") else 1.2
        if span is None:
            score -= self._inner(slot, inside)
            if any(t.span is not None and t.span.quoted for t in inside):
                score -= 0.2 if slot.kind == "query" else 0.9
            score -= self._naming(inside)
        if inside[0].low in language.determiners and slot.kind not in LONG:
            score -= 0.35
        if slot.kind not in LONG and span is None and self._named(inside[0]):
            score -= 0.3
        if slot.kind not in LONG and span is None:
            if inside[0].low in language.function_words and len(inside) > 1:
                score -= 0.4 if not self._is_determiner(first) else 0.0
            if len(inside) > 1 and self._named(inside[-1]) and (
                inside[-1].low not in slot.name_words
            ):
                score -= 0.15
        if slot.kind == "identifier" and span is None:
            digits = len(inside) == 1 and any(c.isdigit() for c in inside[0].text)
            score += 0.6 if digits else -0.1 * len(inside)
        if (
            slot.kind in LONG
            and len(inside) > 1
            and inside[0].fold
            and (
                inside[0].fold in self.tool.noun_words
                or inside[0].low in slot.name_words
            )
        ):
            score -= 0.2
        if slot.kind in ("place", "person"):
            named = inside[0].text[:1].isupper()
            score += 0.4 if named else -0.25 if slot.kind == "person" else 0.0
        if span is None and all(
            token.low in language.function_words for token in inside
        ):
            score -= 1.2
        return score

    def _naming(self, inside: Sequence[Token]) -> float:
        """The cost of words that name the tool's matter instead of a value."""
        matter = [
            token
            for token in inside
            if token.fold and token.low not in self.language.function_words
        ]
        if matter and all(self._named(token) for token in matter):
            return 0.7
        if not matter:
            return 0.0
        lead_ins = {
            low
            for slot in self.tool.slots
            for low in (*slot.cues, *self.language.table("cues").get(slot.kind, ()))
        }
        for here, behind in zip(inside, inside[1:], strict=False):
            if here is not inside[-2] and self._named(here) and (
                behind.low in self.language.prepositions and behind.low in lead_ins
            ):
                return 0.6
        if self._named(matter[0]):
            place = inside.index(matter[0]) + 1
            if len(inside) > place + 1 and (
                inside[place].low in self.language.prepositions
            ):
                return 0.6
        if all(token.fold in self.tool.foreign for token in matter):
            return 0.3
        start = 1 if inside[0].low in self.language.determiners else 0
        if start and len(inside) > 2 and self._named(inside[1]):
            return 0.4
        return 0.0

    def _inner(self, slot: Slot, inside: Sequence[Token]) -> float:
        language = self.language
        small = sum(token.low in language.prepositions for token in inside)
        if slot.kind not in LONG:
            small += 2 * sum(token.low in ("'s", "’s") for token in inside[:-1])
        dated = sum(
            token.span is not None and bool(token.span.kinds & {"date", "time", "number"})
            for token in inside
        )
        if slot.kind == "list":
            joined = sum(
                token.low in language.words("coordination") or token.low == ","
                for token in inside
            )
            return 0.25 * small - 0.3 * joined
        if slot.kind in LONG:
            moments = any(
                other.kind in ("date", "time", "datetime") for other in self.tool.slots
            )
            return 0.03 * small + (0.5 * dated if moments else 0.0)
        cost = 0.25 * small + 0.6 * dated
        shown = [len(str(value).split()) for value in slot.values]
        longest = max(shown, default=4)
        return cost + 0.15 * max(0, len(inside) - max(longest, 3))
