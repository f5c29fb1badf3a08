"""Commands that fit a question."""

from __future__ import annotations

from neuraxis.plugins.manifest import parse_manifest
from neuraxis.plugins.search import build_index, search
from neuraxis.specs import PluginSpec


def plugin(name: str, **commands: str) -> PluginSpec:
    text = f"name: {name}\ninfo: {{description: about {name}}}\ncommands:\n"
    for key, description in commands.items():
        text += f"  - command_name: {key}\n    description: {description}\n"
        text += "    parameter:\n      type:\n        query:\n          type: str\n"
        text += f"          description: for {key}\n"
    return parse_manifest(text)[0]


SPECS = [
    plugin("web", search_pages="look for pages on the web", fetchPage="load one page"),
    plugin("images", crop="cut parts out of pictures", resize="make a picture smaller"),
    plugin("天气", now="今天的天气预报"),
]


def names(query: str, most: int = 10) -> list[str]:
    return [hit.command.name for hit in search(SPECS, query, most)]


def test_the_best_comes_first() -> None:
    """By name, by description, by parts of a name."""
    assert names("crop this for me")[0] == "crop"
    assert names("make the pictures smaller")[0] == "resize"
    assert names("fetch a page")[0] == "fetchPage"
    assert names("SEARCH")[0] == "search_pages"


def test_scripts_without_spaces() -> None:
    """Pairs of signs stand for words."""
    assert names("明天天气预报") == ["now"]


def test_nothing_in_common_is_no_hit() -> None:
    """Words that all questions have do not count."""
    assert names("what is the meaning of it") == []
    assert names("") == []
    assert search([], "crop") == ()


def test_most_and_order() -> None:
    """At most so many, scores falling, the same every time."""
    index = build_index(SPECS)
    hits = search(index, "page picture web", 2)
    assert len(hits) == 2
    assert hits[0].score >= hits[1].score
    assert hits == search(index, "page picture web", 2)
    assert hits[0].plugin in SPECS
