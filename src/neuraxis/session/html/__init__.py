"""Answers, sessions and their objects as HTML, for notebooks.

Everything is escaped; there are no scripts, and nothing is fetched: a Markdown picture
in a text becomes a link. Pictures are embedded.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from html import escape
from typing import Any

from neuraxis.assets.describe import describe
from neuraxis.assets.embed import COLUMNS, is_picture, of_root, plain_cell
from neuraxis.assets.preview import preview
from neuraxis.assets.rows import rows_of
from neuraxis.assets.store import AssetStore, ReferenceLost
from neuraxis.events import Event, MessageSent
from neuraxis.formatting import counted, digits
from neuraxis.journal import Entry
from neuraxis.messages import Result
from neuraxis.planning.plan import Plan
from neuraxis.references.asset_ref import AssetRef

MOST = 20
"""Maximum objects shown of an answer or session."""
_TEXT, _CELL, _PIXELS = 100_000, 80, 800

Objects = Iterable[tuple[str, Callable[[], Any]]]
"""Objects by id, each with the function that reads it."""


def markdown(text: str) -> str:
    """Return a model's Markdown as HTML."""
    from markdown_it import MarkdownIt  # slow to import; comes with rich

    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    return reader.render(text[:_TEXT])


def render_object(value: Any) -> str:
    """Return a table, picture or short result as HTML, else its description."""
    if (table := rows_of(value)) is not None:
        return _table(*table)
    if is_picture(value):
        try:
            return _picture(value)
        except (OSError, ValueError):
            pass  # it is described
    if (shown := preview(value)) is not None:
        text = json.dumps(shown, ensure_ascii=False, indent=2)
        return f"<pre>{escape(text)}</pre>"
    return f"<pre>{_short(describe(value), 400)}</pre>"


def render_answer(
    text: str,
    error: str,
    plans: Sequence[Plan],
    calls: Sequence[Result],
    objects: Objects,
    files: Sequence[str],
) -> str:
    """Return an answer: its text, plans, calls, objects and files."""
    from neuraxis.planning.draw import as_svg, drawn  # a first run needs none

    blocks = [markdown(text)]
    if error:
        blocks.append(f"<p><b>{escape(error)}</b></p>")
    blocks += [
        f"<p>✗ {escape(result.call.id)}: {_short(result.error.message, _TEXT)}</p>"
        for result in calls
        if result.error is not None
    ]
    states = {result.call.id: result.status for result in calls}
    # `img` cuts a drawing off from the page: nothing in it is clicked or fetched
    blocks += [
        _embedded("svg+xml", as_svg(drawn(plan, states)).encode()) for plan in plans
    ]
    blocks += _objects(objects)
    if files:
        blocks.append(
            f"<p>{', '.join(f'<code>{escape(path)}</code>' for path in files)}</p>"
        )
    return _box(blocks)


def render_session(id: str, entries: Iterable[Entry], assets: AssetStore) -> str:
    """Return a session as HTML: its requests, answers and objects."""
    blocks = [f"<p>session <code>{escape(id)}</code></p>"]
    messages = [_message_html(entry.event) for entry in entries]
    blocks += filter(None, messages)
    objects = [
        (asset_id, partial(_content, assets, asset_id)) for asset_id in assets.ids
    ]
    return _box([*blocks, *_objects(objects)])


def _content(assets: AssetStore, id: str) -> Any:
    return of_root(assets.root(id), AssetRef(asset_id=id))


def _message_html(event: Event | Any) -> str:
    if not isinstance(event, MessageSent):
        return ""
    if event.sender == "user":
        return f"<p><b>{escape(event.content[:_TEXT])}</b></p>"
    return markdown(event.content) if event.receiver == "user" else ""


def _objects(objects: Objects) -> list[str]:
    blocks: list[str] = []
    for id, read in list(objects)[-MOST:]:
        try:
            shown = render_object(read())
        except ReferenceLost:
            shown = "<p>it is lost</p>"
        blocks.append(f"<p><code>{escape(id)}</code></p>{shown}")
    return blocks


def _table(names: list[str], rows: list[Sequence[Any]], total: int) -> str:
    shown = names[:COLUMNS]
    head = "".join(f"<th>{_short(name, _CELL)}</th>" for name in shown)
    body = "".join(f"<tr>{''.join(map(_cell, row[:COLUMNS]))}</tr>" for row in rows)
    size = f"{_shown_of(rows, total, 'row')}, {_shown_of(shown, len(names), 'column')}"
    return f"<table><thead><tr>{head}</tr></thead>{body}</table><p>{size}</p>"


def _shown_of(shown: Sequence[Any], total: int, unit: str) -> str:
    size = counted(total, unit)
    return size if len(shown) == total else f"the first {len(shown)} of {size}"


def _cell(value: Any) -> str:
    text = digits(value) if isinstance(value, float) else plain_cell(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    style = ' style="text-align:right"' if is_number else ""
    return f"<td{style}>{_short(text, _CELL)}</td>"


def _short(value: Any, most: int) -> str:
    text = value if isinstance(value, str) else str(describe(value))
    return escape(text if len(text) <= most else f"{text[:most]}…")


def _picture(value: Any) -> str:
    shown, sink = value.convert("RGBA"), io.BytesIO()
    shown.thumbnail((_PIXELS, _PIXELS))
    shown.save(sink, "PNG")
    return _embedded("png", sink.getvalue())


def _embedded(kind: str, content: bytes) -> str:
    data = base64.b64encode(content).decode("ascii")
    return f'<p><img style="max-width:100%" src="data:image/{kind};base64,{data}"></p>'


def _box(blocks: Iterable[str]) -> str:
    return f'<div class="neuraxis">{"".join(blocks)}</div>'
