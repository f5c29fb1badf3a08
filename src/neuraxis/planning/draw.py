"""Draw a checked plan and its steps' states as text or SVG.

A step's column is the length of the longest path to it: steps in one column may run at
the same time. A line means that a step uses a result, a broken one that it waits for an
effect. A line to a more distant column runs between the rows of boxes.
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
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff"
    "\ud800-\udfff]"
)
"""Characters that XML forbids, that control a terminal, or that reverse text."""


class DrawnStep(Struct, frozen=True, kw_only=True):
    """One step in a drawing; it names other steps by index."""

    label: str
    arguments: str
    effects: str
    state: str
    """`done`, `failed`, `skipped`, or "" before it ran."""
    column: int
    uses: tuple[int, ...]
    """Steps whose results this step uses."""
    after: tuple[int, ...]
    """Other steps that this step waits for."""


def drawn(plan: Plan, states: Mapping[str, str] | None = None) -> list[DrawnStep]:
    """Return the steps with their columns; `states` by call id."""
    indexes = {step.call.id: index for index, step in enumerate(plan.steps)}
    waits = waits_for(plan)
    drawings: list[DrawnStep] = []
    for step in plan.steps:
        call_id = step.call.id
        uses = sorted(indexes[dependency] for dependency in step.depends)
        after = sorted(
            indexes[dependency] for dependency in waits[call_id] - step.depends
        )
        columns = [drawings[index].column for index in (*uses, *after)]
        loop = " for each item" if step.loop is not None else ""
        name = f" as {step.call.name}" if step.call.name else ""
        arguments = _json(step.arguments)
        if step.loop is not None:
            items = step.call.for_each
            items_text = items if isinstance(items, str) else _json(items)
            arguments = f"{items_text}: {arguments}"
        drawings.append(
            DrawnStep(
                label=_plain(f"{step.call.target}{loop}{name}"),
                arguments=_plain("" if arguments == "{}" else arguments),
                effects=step.command.spec.effects.kind,
                state=(states or {}).get(call_id, ""),
                column=max(columns, default=-1) + 1,
                uses=tuple(uses),
                after=tuple(after),
            )
        )
    return drawings


def _plain(text: str) -> str:
    return _UNPRINTABLE.sub(" ", text)


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _char_width(char: str) -> int:
    """Return the number of terminal columns that a character takes."""
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _cut(text: str, width: int) -> str:
    if len(text) <= width and sum(map(_char_width, text)) <= width:
        return text
    length, remaining = 0, width - 1
    while (
        length < len(text) and (remaining := remaining - _char_width(text[length])) >= 0
    ):
        length += 1
    return text[:length] + "…"


def _pad(text: str, width: int) -> str:
    return text + " " * (width - sum(map(_char_width, text)))


def as_text(steps: Sequence[DrawnStep]) -> str:
    """Return the plan as lines of text, column by column."""
    columns = max((step.column for step in steps), default=-1) + 1
    lines = [f"a plan of {counted(len(steps), 'step')} in {counted(columns, 'column')}"]
    width = max(
        (sum(map(_char_width, _cut(step.label, 40))) for step in steps), default=0
    )
    for column in range(columns):
        lines.append(f"column {column + 1}")
        for index, step in enumerate(steps):
            if step.column != column:
                continue
            mark = _MARKS.get(step.state, "·")
            line = f"  {mark} {index + 1}. {_pad(_cut(step.label, 40), width)}"
            line += f"  {step.effects:10}"
            if step.uses:
                line += f"  uses {_numbers(step.uses)}"
            if step.after:
                line += f"  after {_numbers(step.after)}"
            if step.arguments:
                line += f"  {_cut(step.arguments, 60)}"
            lines.append(line.rstrip())
    return "\n".join(lines)


def _numbers(indexes: Sequence[int]) -> str:
    shown = ", ".join(str(index + 1) for index in indexes[:8])
    return shown if len(indexes) <= 8 else f"{shown} and {len(indexes) - 8} more"


def as_svg(steps: Sequence[DrawnStep]) -> str:
    """Return the plan as SVG; all its text is escaped."""
    rows: dict[int, int] = {}
    corners: list[tuple[int, int]] = []
    for step in steps:
        row = rows.get(step.column, 0)
        rows[step.column] = row + 1
        corners.append(
            (
                _EDGE + step.column * (_WIDTH + _ACROSS),
                _EDGE + row * (_HEIGHT + _DOWN),
            )
        )
    across = max((x for x, _ in corners), default=0) + _WIDTH + _EDGE
    down = max((y for _, y in corners), default=0) + _HEIGHT + _EDGE
    elements = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{across}" height="{down}" '
        f'viewBox="0 0 {across} {down}" role="img" '
        f'aria-label="a plan of {counted(len(steps), "step")}" '
        'font-family="system-ui, sans-serif" font-size="13">',
        f'<rect width="{across}" height="{down}" fill="#ffffff"/>',
    ]
    for index, step in enumerate(steps):
        for dependency in step.uses:
            elements.append(_line(corners[dependency], corners[index], broken=False))
        for dependency in step.after:
            elements.append(_line(corners[dependency], corners[index], broken=True))
    for index, step in enumerate(steps):
        elements.append(_box(index, step, *corners[index]))
    return "\n".join((*elements, "</svg>", ""))


def _line(start: tuple[int, int], end: tuple[int, int], *, broken: bool) -> str:
    x, y = start[0] + _WIDTH, start[1] + _HEIGHT // 2
    to_x, to_y = end[0], end[1] + _HEIGHT // 2
    style = ' stroke-dasharray="4 4"' if broken else ""
    path = f"M{x} {y}"
    if to_x - x > _ACROSS:
        # beneath the row of its beginning, where no box is in its way
        y += (_HEIGHT + _DOWN) // 2
        path += (
            f" {_bend(x, start[1] + _HEIGHT // 2, x + _ACROSS, y)} H{to_x - _ACROSS}"
        )
        x = to_x - _ACROSS
    return (
        f'<path d="{path} {_bend(x, y, to_x, to_y)}" '
        f'fill="none" stroke="{"#a0aec0" if broken else "#4a5568"}"{style}/>'
    )


def _bend(x: int, y: int, to_x: int, to_y: int) -> str:
    middle = (x + to_x) // 2
    return f"C{middle} {y} {middle} {to_y} {to_x} {to_y}"


def _box(place: int, step: DrawnStep, x: int, y: int) -> str:
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
