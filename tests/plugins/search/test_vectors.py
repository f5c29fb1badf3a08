"""Commands found by meaning, fused with those that are found by words."""

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Options, Session, command
from neuraxis.errors import ConfigError, MissingExtra
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.search.index import Entry, Hit
from neuraxis.plugins.search.vectors import Vectors, static_embedding

MEANINGS = ({"car", "automobile", "drive"}, {"rain", "weather"}, {"song", "music"})
ENTRIES = [
    Entry(key="rent", texts=("rent_automobile", "", "Hire one for a day.", "", "")),
    Entry(key="sky", texts=("weather", "", "How it is outside.", "", "")),
    Entry(key="play", texts=("play_song", "", "Play it.", "", "")),
]


def embed(texts: Sequence[str]) -> list[list[float]]:
    """A double of a model: what each text is about."""
    split = [set(text.lower().replace(":", " ").split()) for text in texts]
    return [[float(bool(own & each)) for each in MEANINGS] for own in split]


def test_another_word_for_the_same_thing_is_found() -> None:
    """No word of the request stands in the command."""
    vectors = Vectors(embed)
    vectors.update(ENTRIES)
    assert vectors.fused("I need a car", [], 1)[0].key == "rent"


def test_words_and_meaning_both_count() -> None:
    """The best of the words stays before what is only near, at half its weight."""
    vectors = Vectors(embed)
    vectors.update(ENTRIES)
    hits = [Hit(key="sky", score=8.0), Hit(key="play", score=1.0)]
    found = vectors.fused("car", hits, 3)
    assert [hit.key for hit in found] == ["sky", "rent", "play"]
    assert vectors.fused("rain car", hits, 3)[0].key == "sky"


def test_of_no_commands_the_words_are_all_there_is() -> None:
    """An index without entries asks for no vector."""

    def never(texts: Sequence[str]) -> Any:
        raise AssertionError(texts)

    assert Vectors(never).fused("car", [Hit(key="a", score=1.0)], 5)[0].key == "a"


@pytest.mark.parametrize("given", [[[1.0]], [1.0, 2.0, 3.0], []])
def test_a_function_that_gives_other_than_a_vector_each_is_told(given: Any) -> None:
    """By the name of the option, with what was expected."""
    with pytest.raises(ConfigError, match=r"options\.embed: expected 3 vectors"):
        Vectors(lambda texts: given).update(ENTRIES)


def test_a_session_finds_by_meaning(tmp_path: Path) -> None:
    """`Options(embed=…)`: the prompt shows what is meant, though no word is shared."""

    def made(number: int) -> Any:
        def job(n: int) -> int:
            return n

        job.__name__ = f"job_{number}"
        job.__doc__ = f"Start the batch job number {number} of the cluster."
        return command(job, effects="none")

    @command(effects="none")
    def automobile(days: int) -> str:
        """Hire one."""
        return f"for {days} days"

    def shown(**options: Any) -> bool:
        with Session(
            ScriptedModel(["Done."]),
            plugins=[*map(made, range(60)), automobile],
            workspace=tmp_path,
            options=Options(catalog_limit=2_000, **options),
        ) as session:
            session.run_sync("I need a car")
            prompt = session.prompt()
        text = prompt.messages[0].content + json.dumps(prompt.native_tools or ())
        return "automobile" in text

    assert shown(embed=embed)
    assert not shown()


def test_without_the_package_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What to install stands in the error."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"neuraxis\[embeddings\]"):
        static_embedding()


def test_the_static_model_knows_what_is_near() -> None:
    """The packaged vectors are read without the package's code."""
    if importlib.util.find_spec("wordllama") is None:
        pytest.skip("the extra `embeddings` is not installed")
    vectors = Vectors(static_embedding())
    vectors.update(ENTRIES)
    assert vectors.fused("a vehicle to drive for tomorrow", [], 1)[0].key == "rent"
    assert vectors.fused("will there be rain?", [], 1)[0].key == "sky"
