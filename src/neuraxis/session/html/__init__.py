"""Answers, sessions and their objects as HTML, for notebooks.

Everything is escaped; there are no scripts, and nothing is fetched: a Markdown picture
in a text becomes a link. Pictures are embedded.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from html import escape
from typing import Any

from neuraxis.assets.describe import describe
from neuraxis.assets.embed import COLUMNS, is_picture, of_root, rows_of
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


def of_object(value: Any) -> str:
    """Return a table or picture as HTML, else its description."""
    if (table := rows_of(value)) is not None:
        return _table(*table)
    if is_picture(value):
        try:
            return _picture(value)
        except (OSError, ValueError):
            pass  # it is described
    return f"<pre>{_short(describe(value), 400)}</pre>"


def of_answer(
    text: str,
    error: str,
    plans: Sequence[Plan],
    calls: Sequence[Result],
    objects: Objects,
    files: Sequence[str],
) -> str:
    """Return an answer: its text, plans, calls, objects and files."""
    from neuraxis.planning.draw import as_svg, drawn  # a first run needs none

    parts = [markdown(text)]
    if error:
        parts.append(f"<p><b>{escape(error)}</b></p>")
    parts += [
        f"<p>✗ {escape(result.call.id)}: {_short(result.error.message, _TEXT)}</p>"
        for result in calls
        if result.error is not None
    ]
    states = {result.call.id: result.status for result in calls}
    # `img` cuts a drawing off from the page: nothing in it is clicked or fetched
    parts += [
        _embedded("svg+xml", as_svg(drawn(plan, states)).encode()) for plan in plans
    ]
    parts += _objects(objects)
    if files:
        parts.append(
            f"<p>{', '.join(f'<code>{escape(path)}</code>' for path in files)}</p>"
        )
    return _boxed(parts)


def of_session(id: str, entries: Iterable[Entry], assets: AssetStore) -> str:
    """Return a session: what was asked and answered, and its objects."""
    parts = [f"<p>session <code>{escape(id)}</code></p>"]
    parts += [part for entry in entries if (part := _event_html(entry.event))]
    kept = [(own, partial(_content, assets, own)) for own in assets.ids]
    return _boxed([*parts, *_objects(kept)])


def _content(assets: AssetStore, id: str) -> Any:
    return of_root(assets.root(id), AssetRef(asset_id=id))


def _event_html(event: Event | Any) -> str:
    if not isinstance(event, MessageSent):
        return ""
    if event.sender == "user":
        return f"<p><b>{escape(event.content[:_TEXT])}</b></p>"
    return markdown(event.content) if event.receiver == "user" else ""


def _objects(objects: Objects) -> list[str]:
    found: list[str] = []
    for id, read in list(objects)[-MOST:]:
        try:
            shown = of_object(read())
        except ReferenceLost:
            shown = "<p>it is lost</p>"
        found.append(f"<p><code>{escape(id)}</code></p>{shown}")
    return found


def _table(names: list[str], rows: list[Sequence[Any]], total: int) -> str:
    shown = names[:COLUMNS]
    head = "".join(f"<th>{_short(name, _CELL)}</th>" for name in shown)
    body = "".join(f"<tr>{''.join(map(_cell, row[:COLUMNS]))}</tr>" for row in rows)
    size = f"{_part(rows, total, 'row')}, {_part(shown, len(names), 'column')}"
    return f"<table><thead><tr>{head}</tr></thead>{body}</table><p>{size}</p>"


def _part(shown: Sequence[Any], total: int, what: str) -> str:
    whole = counted(total, what)
    return whole if len(shown) == total else f"the first {len(shown)} of {whole}"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f'<td style="text-align:right">{digits(value)}</td>'
    return f"<td>{'' if value is None else _short(value, _CELL)}</td>"


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


def _boxed(parts: Iterable[str]) -> str:
    return f'<div class="neuraxis">{"".join(parts)}</div>'
