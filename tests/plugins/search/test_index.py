"""The index of commands: what is found, added, removed, and kept on disk."""

import random
from pathlib import Path

import pytest

from neuraxis.plugins.search.index import Entry, Index
from neuraxis.plugins.search.store import Store
from neuraxis.plugins.search.words import words

TEXTS = {
    "a.convertCurrency": "Convert an amount of money to another currency.",
    "b.getWeather": "Forecast the weather of a city for some days.",
    "c.send_mail": "Send a message to a mail address.",
    "d.translate": "翻译一段文字。",
}


def entries(texts: dict[str, str] = TEXTS) -> list[Entry]:
    return [
        Entry(key=key, texts=(key.partition(".")[2], "", text, "", ""))
        for key, text in texts.items()
    ]


@pytest.mark.parametrize(
    ("request_", "key"),
    [
        ("How many dollars is 100 euros? Converting currencies", "a.convertCurrency"),
        ("what will the weathers be", "b.getWeather"),
        ("I want to send mails to Ada", "c.send_mail"),
        ("文字翻译", "d.translate"),
        ("GETWEATHER", None),
    ],
)
def test_a_request_finds_its_command(request_: str, key: str | None) -> None:
    """Names are taken apart, endings do not matter, other scripts are read."""
    index = Index()
    index.add(entries())
    found = [hit.key for hit in index.find(request_)]
    assert (found[:1] == [key]) if key else not found


def test_both_ends_of_a_long_request_are_read() -> None:
    """What is asked stands before or behind what was pasted in."""
    index = Index()
    index.add(entries())
    pasted = "iVBORw0KGgo" * 2_000
    for request in (f"Send mail: {pasted}", f"{pasted} send this as a mail"):
        assert [hit.key for hit in index.find(request)] == ["c.send_mail"]


def test_names_are_taken_apart() -> None:
    """Camel case, underscores and digits part words."""
    assert words("getHTMLPage_v2") == [*words("get HTML page v"), "2"]
    assert words("running runner runs") == ["run", "run", "run"]


def test_what_is_added_piece_by_piece_is_as_if_added_at_once() -> None:
    """Order and removal leave no trace in the scores."""
    chance = random.Random(1)
    whole = Index()
    whole.add(entries())
    pieces = Index()
    pieces.add(entries({"x.old": "Send the weather of a city."}))
    for entry in entries():
        pieces.add([entry])
        if chance.random() < 0.5:
            pieces.add([entry])
    pieces.remove(["x.old", "never.there"])
    for query in ("weather", "send money to a city"):
        wanted = {hit.key: hit.score for hit in whole.find(query)}
        got = {hit.key: hit.score for hit in pieces.find(query)}
        assert got == pytest.approx(wanted)
    assert len(pieces) == len(whole)


def test_an_index_is_kept_on_disk_and_only_changes_are_read(tmp_path: Path) -> None:
    """The second time nothing is indexed; then only what is new or other."""
    file = tmp_path / "cache" / "commands.msgpack"
    assert Store(file).update(entries()) == 4
    again = Store(file)
    assert again.update(entries()) == 0
    assert again.index.find("weather")[0].key == "b.getWeather"
    other = {**TEXTS, "b.getWeather": "Nothing any more.", "e.x": "Draw a map."}
    del other["a.convertCurrency"]
    assert Store(file).update(entries(other)) == 2
    last = Store(file)
    assert not last.index.find("currency")
    assert last.index.find("map")[0].key == "e.x"


@pytest.mark.parametrize("cut", [0, 1, 7, 50, 200])
def test_a_broken_file_is_as_good_as_none(cut: int, tmp_path: Path) -> None:
    """It is built anew."""
    file = tmp_path / "commands.msgpack"
    Store(file).update(entries())
    file.write_bytes(file.read_bytes()[:cut])
    store = Store(file)
    assert store.update(entries()) == 4
    assert store.index.find("weather")[0].key == "b.getWeather"
