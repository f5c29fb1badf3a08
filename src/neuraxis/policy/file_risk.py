"""Ask the file history whether a call needs an approval for what it does to files.

The manifest names the parameters that are paths (`names_file: write`, `change` or
`remove`); what may happen to a file is decided in `sandbox.files.history`.
"""

from __future__ import annotations

from collections.abc import Iterator

from neuraxis.call_errors import file_way_out
from neuraxis.policy.decision import Decision
from neuraxis.policy.gate import Gate
from neuraxis.policy.provenance.wording import leaves
from neuraxis.sandbox.files.history import Use
from neuraxis.schema.annotations import Annotations
from neuraxis.specs import Json


def file_risk(arguments: Json, marks: Annotations, gate: Gate) -> Decision | None:
    """Return a decision to ask where a file of the user's would be lost, else None."""
    if gate.files is None or not marks.files:
        return None
    for path, use in _changed(arguments, marks):
        if reason := gate.files.risk(path, use):
            return Decision(verdict="ask", reason=reason, way_out=file_way_out(use))
    return None


def allow_files(call_id: str, arguments: Json, marks: Annotations, gate: Gate) -> None:
    """Note that a call was approved, for the files that it names as they are now."""
    if gate.files is None or not marks.files:
        return
    for path, use in _changed(arguments, marks):
        if gate.files.risk(path, use):
            gate.files.allow(call_id, path)


def _changed(arguments: Json, marks: Annotations) -> Iterator[tuple[str, Use]]:
    for place, value in leaves(arguments):
        use = marks.file_use(place)
        if isinstance(value, str) and use in ("write", "change", "remove"):
            yield value, use
