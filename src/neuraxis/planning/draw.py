"""Draw a checked plan and its steps' states as text or SVG.

A step's column is the longest path that leads to it: steps in one column may run at the
same time. A line is drawn where a step uses a result, a broken line where it waits for
an effect; a line to a column further on runs between the rows of boxes.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from msgspec import Struct

from neuraxis.formatting import counted
from neuraxis.planning.plan import Plan, waits_for
from neuraxis.specs import Json

_MARKS = {"done": "✓", "failed": "✗", "skipped": "–"}
_COLOURS = {
    "done": ("#e6f4ea", "#1e7e34"),
    "failed": ("#fdecea", "#b3261e"),
    "skipped": ("#fff8e1", "#8a6d00"),
    "": ("#f4f6f8", "#4a5568"),
}
_WIDTH, _HEIGHT, _ACROSS, _DOWN, _EDGE = 220, 58, 70, 18, 20
_UNFIT = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff"
    "\ud800-\udfff]"
)
"""Characters that XML refuses, that control a terminal, or that reverse text."""


class Drawn(Struct, frozen=True, kw_only=True):
    """One drawn step; steps are known by their index in the plan."""

    label: str
    arguments: str
    effects: str
    state: str
    """`done`, `failed`, `skipped`, or "" before it ran."""
    column: int
    uses: tuple[int, ...]
    """Steps whose results it uses."""
    after: tuple[int, ...]
    """Further steps that it waits for."""


def drawn(plan: Plan, states: Mapping[str, str] | None = None) -> list[Drawn]:
    """Return the steps with their columns; `states` by call id."""
    places = {step.call.id: place for place, step in enumerate(plan.steps)}
    waits = waits_for(plan)
    found: list[Drawn] = []
    for step in plan.steps:
        own = step.call.id
        uses = sorted(places[other] for other in step.depends)
        after = sorted(places[other] for other in waits[own] - step.depends)
        before = [found[place].column for place in (*uses, *after)]
        loop = " for each item" if step.loop is not None else ""
        name = f" as {step.call.name}" if step.call.name else ""
        arguments = _json(step.arguments)
        if step.loop is not None:
            items = step.call.for_each
            each = items if isinstance(items, str) else _json(items)
            arguments = f"{each}: {arguments}"
        found.append(
            Drawn(
                label=_plain(f"{step.call.target}{loop}{name}"),
                arguments=_plain("" if arguments == "{}" else arguments),
                effects=step.command.spec.effects.kind,
                state=(states or {}).get(own, ""),
                column=max(before, default=-1) + 1,
                uses=tuple(uses),
                after=tuple(after),
            )
        )
    return found


def _plain(text: str) -> str:
    return _UNFIT.sub(" ", text)


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _cells(char: str) -> int:
    """Return the number of terminal columns that a character takes."""
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _cut(text: str, most: int) -> str:
    if len(text) <= most and sum(map(_cells, text)) <= most:
        return text
    kept, room = 0, most - 1
    while kept < len(text) and (room := room - _cells(text[kept])) >= 0:
        kept += 1
    return text[:kept] + "…"


def _padded(text: str, width: int) -> str:
    return text + " " * (width - sum(map(_cells, text)))


def as_text(steps: Sequence[Drawn]) -> str:
    """Return the plan as lines of text, column after column."""
    columns = max((step.column for step in steps), default=-1) + 1
    lines = [f"a plan of {counted(len(steps), 'step')} in {counted(columns, 'column')}"]
    width = max((sum(map(_cells, _cut(step.label, 40))) for step in steps), default=0)
    for column in range(columns):
        lines.append(f"column {column + 1}")
        for place, step in enumerate(steps):
            if step.column != column:
                continue
            mark = _MARKS.get(step.state, "·")
            line = f"  {mark} {place + 1}. {_padded(_cut(step.label, 40), width)}"
            line += f"  {step.effects:10}"
            if step.uses:
                line += f"  uses {_numbers(step.uses)}"
            if step.after:
                line += f"  after {_numbers(step.after)}"
            if step.arguments:
                line += f"  {_cut(step.arguments, 60)}"
            lines.append(line.rstrip())
    return "\n".join(lines)


def _numbers(places: Sequence[int]) -> str:
    shown = ", ".join(str(place + 1) for place in places[:8])
    return shown if len(places) <= 8 else f"{shown} and {len(places) - 8} more"


def as_svg(steps: Sequence[Drawn]) -> str:
    """Return the plan as SVG; all its text is escaped."""
    rows: dict[int, int] = {}
    corner: list[tuple[int, int]] = []
    for step in steps:
        row = rows.get(step.column, 0)
        rows[step.column] = row + 1
        corner.append(
            (
                _EDGE + step.column * (_WIDTH + _ACROSS),
                _EDGE + row * (_HEIGHT + _DOWN),
            )
        )
    across = max((x for x, _ in corner), default=0) + _WIDTH + _EDGE
    down = max((y for _, y in corner), default=0) + _HEIGHT + _EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{across}" height="{down}" '
        f'viewBox="0 0 {across} {down}" role="img" '
        f'aria-label="a plan of {counted(len(steps), "step")}" '
        'font-family="system-ui, sans-serif" font-size="13">',
        f'<rect width="{across}" height="{down}" fill="#ffffff"/>',
    ]
    for place, step in enumerate(steps):
        for other in step.uses:
            parts.append(_line(corner[other], corner[place], broken=False))
        for other in step.after:
            parts.append(_line(corner[other], corner[place], broken=True))
    for place, step in enumerate(steps):
        parts.append(_box(place, step, *corner[place]))
    return "\n".join((*parts, "</svg>", ""))


def _line(start: tuple[int, int], end: tuple[int, int], *, broken: bool) -> str:
    x, y = start[0] + _WIDTH, start[1] + _HEIGHT // 2
    to_x, to_y = end[0], end[1] + _HEIGHT // 2
    style = ' stroke-dasharray="4 4"' if broken else ""
    way = f"M{x} {y}"
    if to_x - x > _ACROSS:
        # beneath the row of its beginning, where no box is in its way
        y += (_HEIGHT + _DOWN) // 2
        way += f" {_bend(x, start[1] + _HEIGHT // 2, x + _ACROSS, y)} H{to_x - _ACROSS}"
        x = to_x - _ACROSS
    return (
        f'<path d="{way} {_bend(x, y, to_x, to_y)}" '
        f'fill="none" stroke="{"#a0aec0" if broken else "#4a5568"}"{style}/>'
    )


def _bend(x: int, y: int, to_x: int, to_y: int) -> str:
    middle = (x + to_x) // 2
    return f"C{middle} {y} {middle} {to_y} {to_x} {to_y}"


def _box(place: int, step: Drawn, x: int, y: int) -> str:
    fill, ink = _COLOURS.get(step.state, _COLOURS[""])
    title = escape(f"{step.label} {step.arguments}".strip())
    label = escape(_cut(f"{place + 1}. {step.label}", 26))
    state = f"{_MARKS[step.state]} {step.state}, " if step.state in _MARKS else ""
    note = escape(f"{state}{step.effects}")
    arguments = escape(_cut(step.arguments, 36))
    # the inner svg clips: only the viewer's font knows the width of a letter
    return (
        f'<g><title>{title}</title><rect x="{x}" y="{y}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" rx="6" fill="{fill}" stroke="{ink}"/>'
        f'<svg x="{x + 10}" y="{y}" width="{_WIDTH - 16}" height="{_HEIGHT}">'
        f'<text y="19" font-weight="600" fill="#1a202c">{label}</text>'
        f'<text y="35" fill="{ink}" font-size="11">{note}</text>'
        f'<text y="50" fill="#4a5568" font-size="10">{arguments}</text></svg></g>'
    )
