"""Select what the model sees of results (rule C25), with pictures.

By default it sees all of them. With `final`, a result that a later step of the plan has
used is shown as a reference only. It is stored all the same, for references and for
commands that show a part of it, but the model does not read or pay for its content.

Messages name the assets that they show; `load_parts` adds the pictures and files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal, cast

from msgspec.structs import replace

from neuraxis.assets.describe import size_of
from neuraxis.assets.embed import of_root
from neuraxis.assets.pictures import media_type, part_of
from neuraxis.assets.store import AssetStore, ReferenceLost
from neuraxis.dialects.results import json_text
from neuraxis.errors import CommandError
from neuraxis.execution.offload import in_thread_if
from neuraxis.messages import Message, Part, Path, Result
from neuraxis.planning.plan import Plan
from neuraxis.references.asset_ref import AssetRef, format_url

ShowResults = Literal["all", "final"]
ALWAYS_SHOWN_BYTES = 200
"""Maximum bytes of a value that is always shown: a reference would save nothing."""


def visible_results(
    plan: Plan, results: Sequence[Result], show: ShowResults
) -> Sequence[Result]:
    """Return the results as the model sees them, in the plan's order."""
    if show == "all" or len(results) == 1:
        return results
    used = frozenset[str]().union(
        *(
            step.depends
            for step, result in zip(plan.steps, results, strict=True)
            if result.status == "done"
        )
    )
    return [
        replace(result, stored=True, preview=None)
        if result.call.id in used
        and not result.warnings
        and size_of(result.value, ALWAYS_SHOWN_BYTES) > ALWAYS_SHOWN_BYTES
        else result
        for result in results
    ]


def with_shown_assets(
    messages: Sequence[Message], results: Sequence[Result]
) -> Sequence[Message]:
    """Return the messages; the last one names the pictures of the results."""
    shown = tuple([result.call.id for result in results if result.shown])
    if not shown:
        return messages
    return [*messages[:-1], replace(messages[-1], assets=shown)]


async def load_parts(history: list[Message], assets: AssetStore) -> None:
    """Add the parts of the messages after the last reply, in place."""
    for index in range(len(history) - 1, -1, -1):
        message = history[index]
        if message.role == "assistant":
            return  # earlier messages got their parts before that reply
        if message.assets and not message.parts:
            build_parts = partial(_parts, message.assets, assets)
            history[index] = replace(
                message, parts=await in_thread_if(True, build_parts)
            )


def with_parts(messages: Iterable[Message], assets: AssetStore) -> list[Message]:
    """Return the messages of an earlier session, with their parts."""
    return [
        replace(item, parts=_parts(item.assets, assets)) if item.assets else item
        for item in messages
    ]


def _parts(asset_ids: Sequence[str], assets: AssetStore) -> tuple[Part, ...]:
    return tuple(part for asset_id in asset_ids for part in _parts_of(asset_id, assets))


def _parts_of(asset_id: str, assets: AssetStore) -> list[Part]:
    reference = AssetRef(asset_id=asset_id)
    name = json_text(assets.name(asset_id))[1:-1]
    try:
        root = assets.root(asset_id)
    except ReferenceLost:
        url = format_url(reference)
        return [Part(media_type="", data=b"", name=name, about="lost", asset=url)]
    value = of_root(root, reference)
    steps = ("content",) if value is root["content"] else ("content", "response")
    values: list[tuple[Path, Any]] = [(steps, value)]
    if type(value) is list:  # of a step with `for_each`
        items = enumerate(cast("list[Any]", value))
        values = [((*steps, index), item) for index, item in items]
    elif type(value) is dict and not media_type(value):  # with a caption, say
        entries = cast("dict[str, Any]", value).items()
        values = [
            ((*steps, key), item) for key, item in entries if media_type(item)
        ] or values
    parts: list[Part] = []
    for path, item in values:
        try:
            part = part_of(item)
        except CommandError as error:
            part = Part(media_type="", data=b"", about=str(error))
        url = format_url(AssetRef(asset_id=asset_id, field_path=path))
        parts.append(replace(part, name=name, asset=url))
    return parts
