"""Decide whether a value is trusted although the model read untrusted content.

A value is trusted where it occurs in the user's words, in a result without untrusted
origins, or where it belongs to what the user named:

- a record of a result, by a field that the answering system vouches for;
- the one record that was found by looking up the user's words;
- the one address at a place the user named, of somebody the user named.

Each of these leaves an attacker nothing to choose. Where there are two records of one
name, two that were found, two addresses, none is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import cast

from neuraxis.policy.provenance.labels import OWN, is_foreign
from neuraxis.policy.provenance.records import SHORTEST, named_values, only_values
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.provenance.wording import (
    Wording,
    addresses,
    as_said,
    is_composed,
    leaves,
    whose_address,
)
from neuraxis.specs import Json

Answers = Callable[[], Iterable[tuple[str, Json]]]
"""Gives the answers that were said, each with its call's id."""
_SHORT = 5


class Known:
    """Values known so far, for one call's look-ups; read on demand.

    Args:
        origins: of the session.
        plugin: of the call.
        answers: what was said to the model.
    """

    def __init__(self, origins: Origins, plugin: str, answers: Answers) -> None:
        self._origins = origins
        self._plugin = plugin
        self._answers = answers
        self._said: tuple[tuple[str, Json], ...] | None = None
        self._foreign: frozenset[str] = frozenset()
        self._records: list[Json] = []
        self._words = Wording(trusted=origins.words, seen=())
        self._mine = self._all = self._words

    def _read(self) -> tuple[tuple[str, Json], ...]:
        said = self._said
        if said is None:
            said = self._said = tuple(self._answers())
            foreign = self._foreign = self._origins.foreign_calls()
            named, found = list(self._named(said)), list(self._found(said))
            self._records = [*named, *found]
            words = [*self._origins.words, *named]
            self._mine = Wording(trusted=words, seen=())
            self._all = Wording(
                trusted=[
                    *words,
                    *found,
                    *(value for call_id, value in said if call_id not in foreign),
                ],
                seen=[value for call_id, value in said if call_id in foreign],
            )
        return said

    def is_trusted(self, value: Json, *, strict: bool = False) -> bool:
        """Whether it is known; `strict`: a trusted answer alone is not enough."""
        self._read()
        if not self._all.trusted(value):
            return False
        return not strict or self._is_mine(value)

    def is_meant(self, value: Json, *, strict: bool = False) -> bool:
        """Check whether a value belongs to what the user wrote or named.

        A trusted answer alone is not enough: a stranger's reference may choose in it.
        """
        self._read()
        return self._mine.trusted(value) or (not strict and value in self._records)

    def seen(self, value: Json) -> bool:
        """Whether it stands in what others said."""
        self._read()
        return self._all.seen(value)

    def is_wished(self, arguments: Json) -> bool:
        """Check whether any value of a call is the user's or named."""
        self._read()
        return any(
            value in self._records
            or (len(str(value)) >= SHORTEST and self._is_mine(value))
            for _, value in leaves(arguments)
            if not (value is None or isinstance(value, bool) or value == "")
        )

    def _is_mine(self, value: Json) -> bool:
        """Check whether the user's words or a record they name contain it.

        Also a text that begins with some of them and ends with a trusted answer's:
        `Dinner at Chez Ada` of "an event 'Dinner at {restaurant}'".
        """
        return self._mine.trusted(value) or is_composed(value, self._mine, self._all)

    def _named(self, said: Iterable[tuple[str, Json]]) -> Iterator[Json]:
        """Vouched values of the records that the user named.

        In an answer that no stranger had a part in, every field is vouched for. A short
        one is a number in a list of some plugin's own, and nothing to another.
        """
        for call_id, answer in said:
            fields = self._origins.fields.get(call_id)
            if call_id in self._foreign:
                if not fields:
                    continue
            else:
                fields = None
            asked = {as_said(text) for text in self._looked_up(call_id)}
            named = named_values(answer, fields, self._words, asked)
            yield from self._fit(call_id, named)

    def _found(self, said: Iterable[tuple[str, Json]]) -> Iterator[Json]:
        """Vouched values of the one record that the user's words led to."""
        for call_id, answer in said:
            fields = self._origins.fields.get(call_id)
            if call_id in self._foreign and not fields:
                continue
            if self._looked_up(call_id):
                one = only_values(answer, fields if call_id in self._foreign else None)
                yield from self._fit(call_id, one)

    def _fit(self, call_id: str, values: Iterable[Json]) -> Iterator[Json]:
        own = self._origins.givers.get(call_id) == self._plugin
        return (value for value in values if own or len(str(value)) > _SHORT)

    def _looked_up(self, call_id: str) -> tuple[str, ...]:
        """The user's words in a call's arguments; none if strangers chose any.

        Once the model has read strangers they may choose among the user's words too:
        then only a word that is a name by itself counts.
        """
        origins, words = self._origins, self._words
        if is_foreign(origins.inputs.get(call_id, OWN)):
            return ()
        early = call_id in origins.early
        return tuple(
            value
            for _, value in leaves(origins.asked.get(call_id))
            if isinstance(value, str)
            and len(value) >= SHORTEST
            and (words.trusted(value) if early else words.name_of(value, ()))
        )

    def is_address_of(self, value: Json, others: Iterable[Json]) -> bool:
        """Check whether it is the address of a contact the user named.

        It must stand where the user said to look, and there no other address.
        """
        if not isinstance(value, str):
            return False
        persons = [
            cast("str", person)
            for person in others
            if whose_address(value, person) and self._words.trusted(person)
        ]
        return bool(persons) and any(
            self._looked_up(call_id) and addresses(answer) == {value.casefold()}
            for call_id, answer in self._read()
            if call_id in self._foreign
        )
