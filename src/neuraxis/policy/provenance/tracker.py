"""Provenance tracker: origins of values, trusted or untrusted.

It stores the labels of results and files, and of what references lead to (`trace`
labels a call's arguments). A label is the set of origins a value was made from; an
empty one means: the user's words, the model's own before it read anything untrusted,
or commands whose results depend on their arguments only.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path as File

from msgspec import Struct, field

from neuraxis.events import (
    AssetStored,
    CallFinished,
    CallStarted,
    Event,
    Inside,
    MessageSent,
    SessionStarted,
    Unknown,
    innermost,
)
from neuraxis.messages import Path
from neuraxis.planning.for_each import Loop
from neuraxis.planning.plan import Step
from neuraxis.planning.references import ITEM
from neuraxis.policy.provenance.file_changes import Snapshot, changed
from neuraxis.policy.provenance.labels import (
    OWN,
    Label,
    Origin,
    Traced,
    from_told,
    is_foreign,
    is_private,
    to_tell,
)
from neuraxis.policy.provenance.wording import leaves
from neuraxis.references.asset_ref import AssetRef
from neuraxis.references.path import RESPONSE
from neuraxis.schema.annotations import (
    Annotations,
    is_covered,
    marks_of,
    trusted_fields,
)
from neuraxis.specs import CommandSpec, Json

IMPORTED = (".py", ".pyc", ".pyw", ".so", ".pth", ".zip", ".egg", ".pyd")
"""Files that a script may load as code without naming them."""


class Origins(Struct):
    """What one session knows of where its values came from."""

    results: dict[str, Label] = field(default_factory=dict[str, Label])
    """By call id; a call that is not here answered from its arguments alone."""
    wary: bool = False
    """Whether a command that says nothing of it counts as an open-world one."""
    files: dict[str, Label] = field(default_factory=dict[str, Label])
    """By path in the workspace; a file that is not here is the user's, or trusted."""
    read: Label = OWN
    """All that the model was shown of strangers' words."""
    read_private: bool = False
    words: list[str] = field(default_factory=list[str])
    """What the user said, all of it."""
    own_files: set[str] = field(default_factory=set[str])
    """Paths that calls of this session wrote."""
    quiet: bool = True
    """Nothing foreign was read or written yet: what a model writes is its own."""
    written: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Files that each running call wrote."""
    watched: dict[str, Snapshot] = field(default_factory=dict[str, Snapshot])
    """The workspace before each running script that may have foreign words in it."""
    inputs: dict[str, Label] = field(default_factory=dict[str, Label])
    """As `results`, without what the command itself adds: of its vouched fields."""
    fields: dict[str, tuple[Path, ...]] = field(
        default_factory=dict[str, tuple[Path, ...]]
    )
    """The vouched fields of each answer, by call id."""
    givers: dict[str, str] = field(default_factory=dict[str, str])
    """The plugin of each answer that has a label, by call id."""
    asked: dict[str, Json] = field(default_factory=dict[str, Json])
    """The arguments of each call whose answer has a label, as they were written."""
    early: set[str] = field(default_factory=set[str])
    """Those of them that were made before the model had read anything foreign."""
    given: Label = OWN
    """What a session inside of a command is handed is made of: requests and objects."""
    _vouched: dict[str, tuple[Path, ...]] = field(
        default_factory=dict[str, tuple[Path, ...]]
    )
    own: dict[str, Label] = field(default_factory=dict[str, Label])
    _told: dict[Label, tuple[Json, ...]] = field(
        default_factory=dict[Label, tuple[Json, ...]]
    )
    _marks: dict[str, tuple[CommandSpec, Annotations]] = field(
        default_factory=dict[str, tuple[CommandSpec, Annotations]]
    )

    def marks(self, target: str, spec: CommandSpec) -> Annotations:
        """The marks of a command's parameters, read once."""
        known = self._marks.get(target)
        if known is None or known[0] is not spec:
            known = self._marks[target] = (spec, marks_of(spec.parameters))
        return known[1]

    def said(self, text: str) -> None:
        """Record a user message; an untrusted request does not count."""
        if not is_foreign(self.given):
            self.words.append(text)

    def told(self, call_ids: Iterable[str]) -> None:
        """The model is shown these results (or how they failed)."""
        for call_id in call_ids:
            label = self.results.get(call_id)
            if label:
                self.reads(label)
        self._look()

    def reads(self, label: Label) -> None:
        """The model is shown what is made of these."""
        self.read |= frozenset(o for o in label if o.open_world)
        self.read_private = self.read_private or is_private(label)
        self._look()

    def _look(self) -> None:
        self.quiet = not self.read and not self.files

    # --- what references lead to -----------------------------------------------

    def label(self, ref: AssetRef, step: Step) -> Label:
        """The label of what a reference leads to."""
        if step.item is not None and ref.asset_id == ITEM:
            return self.results.get(f"{step.item.part_of}.{ITEM}", OWN)
        fields = self.fields.get(ref.asset_id)
        path = ref.field_path[len(RESPONSE) :]
        if fields and not self.read and is_covered(fields, path):
            # chosen before anything foreign was read, and vouched for
            return self.inputs.get(ref.asset_id, OWN)
        return self.results.get(ref.asset_id, OWN)

    def loops(self, step: Step, loop: Loop) -> None:
        """Record that a step repeats for each item of a list."""
        refs = [ref for binding in loop.bindings for ref in binding.template.refs]
        refs += [ref for _, ref in loop.asset_refs]
        label = OWN.union(*(self.label(ref, step) for ref in refs))
        if self.read and not refs:
            label |= self.read  # the model wrote the list itself
        if label:
            self.results[f"{step.call.id}.{ITEM}"] = label

    def foreign_calls(self) -> frozenset[str]:
        """Ids of the calls whose results strangers had a part in."""
        return frozenset(
            key for key, label in self.results.items() if is_foreign(label)
        )

    def of_file(self, path: str, *, run: bool = False) -> Label:
        """Return the label of a file or folder; `run` includes imports."""
        own = normal(path)
        inside = "" if own == "." else own + "/"
        return OWN.union(
            *(
                label
                for name, label in self.files.items()
                if name == own
                or name.startswith(inside)
                or (run and name.lower().endswith(IMPORTED))
            )
        )

    def answers(self, target: str, step: Step, traced: Sequence[Traced]) -> Label:
        """Return the label of a call's result; store it before running."""
        call_id = step.call.id
        own = self.answers_plainly(
            target, call_id, step.command.spec, step.call.arguments
        )
        inputs = OWN.union(*(item.label for item in traced))
        if inputs:
            self.inputs[call_id] = inputs
        label = own | inputs
        if self.files and _runs_files(self._marks.get(target)):
            label = label.union(*self.files.values())  # a script may read them all
        if label:
            self.results[call_id] = label
            self._vouch(target, call_id, step.command.spec)
            if step.item is not None:
                whole = step.item.part_of
                self.results[whole] = self.results.get(whole, OWN) | label
        return label

    def answers_plainly(
        self, target: str, call_id: str, spec: CommandSpec, arguments: Json = None
    ) -> Label:
        """Return the `answers` label where no argument has one (common case)."""
        label = self.own.get(target)
        if label is None:
            effects = spec.effects
            label = OWN
            says = effects.declared or (self.wary and effects.kind != "none")
            if says and (effects.open_world or effects.kind == "read"):
                label = frozenset(
                    (
                        Origin(
                            source=target,
                            open_world=effects.open_world,
                            private=not effects.open_world,
                        ),
                    )
                )
            self.own[target] = label
        if label:
            self.results[call_id] = label
            self.asked[call_id] = arguments
            if not self.read:
                self.early.add(call_id)
            self.inputs.pop(call_id, None)
            self._vouch(target, call_id, spec)
        return label

    def _vouch(self, target: str, call_id: str, spec: CommandSpec) -> None:
        self.givers[call_id] = target.rpartition(".")[0]
        vouched = self._vouched.get(target)
        if vouched is None:
            vouched = self._vouched[target] = trusted_fields(spec.response)
        if vouched:
            self.fields[call_id] = vouched
        else:  # the id may be that of a reply which did not come about
            self.fields.pop(call_id, None)

    def same(self, call_id: str, earlier: str) -> None:
        """A call is answered with the result of an earlier one."""
        if label := self.results.get(earlier):
            self.results[call_id] = label
            whole, dot, _ = call_id.partition(".")
            if dot:  # one item of a step that is done for each
                self.results[whole] = self.results.get(whole, OWN) | label

    def attached(self, asset_id: str) -> None:
        """An object was handed to the session."""
        self._is_made_of(self.given, asset_id)

    def sums_up(self, asset_id: str) -> Label:
        """Return the label of an object made of everything so far."""
        label = OWN.union(self.read, *self.results.values())
        self._is_made_of(label, asset_id)
        return label

    def adds(self, call_id: str, label: Label) -> None:
        """Add origins to a running call, from its nested session."""
        whole, dot, _ = call_id.partition(".")
        self._is_made_of(label, call_id, whole if dot else "")
        self.inputs[call_id] = self.inputs.get(call_id, OWN) | label
        self.fields.pop(call_id, None)

    def forget(self, gone: set[str]) -> None:
        """Remove labels of discarded calls and their items."""
        for call_id in [known for known in self.results if is_of(known, gone)]:
            del self.results[call_id]
            self.inputs.pop(call_id, None)
            self.fields.pop(call_id, None)
            self.givers.pop(call_id, None)
            self.asked.pop(call_id, None)
            self.early.discard(call_id)

    def told_as(self, label: Label) -> tuple[Json, ...]:
        """A label as JSON, for the journal."""
        told = self._told.get(label)
        if told is None:
            told = self._told[label] = to_tell(label)
        return told

    # --- files -----------------------------------------------------------------

    def wrote(self, path: str, label: Label, call_id: str = "") -> None:
        """Record a file that a call wrote; it replaces the file's label."""
        name = normal(path)
        if call_id:
            self.written.setdefault(call_id, []).append(path)
        self.own_files.add(name)
        if is_foreign(label):
            self.files[name] = label
        else:
            self.files.pop(name, None)
        self._look()

    def ended(self, call_id: str, workspace: File) -> tuple[str, ...]:
        """Record the end of a call, with files its script wrote."""
        before = self.watched.pop(call_id, None)
        if before is not None:
            label = self.results.get(call_id, OWN)
            for path in changed(workspace, before):
                self.wrote(path, label, call_id)
        return tuple(dict.fromkeys(self.written.pop(call_id, ())))

    def may_create(self, workspace: File, path: Json) -> bool:
        """Check whether writing here creates a new, ordinary file only."""
        if not isinstance(path, str) or not path or "\\" in path:
            return False
        name = normal(path)
        parts = name.split("/")
        if path.startswith(("/", "~")) or any(part.startswith(".") for part in parts):
            return False
        return name in self.own_files or not os.path.lexists(workspace / name)

    # --- going on later --------------------------------------------------------

    def replay(
        self, events: Iterable[Event | Unknown], untold: Collection[str] = ()
    ) -> None:
        """Take up what an earlier part of this session knew.

        A call that never told its end may have written any file that it names.
        """
        running: dict[str, CallStarted] = {}
        inside: dict[tuple[str, str, str], Inside] = {}
        started: set[str] = set()
        of_tool: dict[tuple[str, str], Label] = {}
        given: Label = OWN
        for event in events:
            match event:
                case SessionStarted():
                    given = from_told(event.origins)
                    self.reads(given)
                case MessageSent(sender="user"):
                    if not is_foreign(given):
                        self.said(event.content)
                case AssetStored() if event.id not in started:
                    self._is_made_of(given, event.id)  # attached
                case CallStarted():
                    running[event.id] = event
                    started.add(event.id)
                    tool = (event.plugin, event.command)
                    of_tool[tool] = of_tool.get(tool, OWN) | self._replay_start(event)
                case Inside():
                    self._replay_inside(event, inside)
                case CallFinished():
                    running.pop(event.id, None)
                    if event.id not in started:
                        # answered with what an earlier call of the same gave (`same`)
                        label = of_tool.get((event.plugin, event.command), OWN)
                        self._is_made_of(label, event.id, event.part_of)
                    for path in event.wrote:
                        self.wrote(path, self.results.get(event.id, OWN))
                    if event.status == "skipped":  # also if it ran: it was given up
                        self.forget({event.id})
                case _:
                    pass
        for call_id, event in running.items():
            # `shown` has what its references led to
            self._may_have_written(call_id, event.arguments, event.shown)
        for event in inside.values():
            told = innermost(event.event)
            self._may_have_written(event.id, told.get("arguments"), told.get("shown"))
        self.told([own for own in self.results if own.partition(".")[0] not in untold])

    def _replay_inside(
        self, event: Inside, running: dict[tuple[str, str, str], Inside]
    ) -> None:
        told = innermost(event.event)
        if told.get("type") in ("session_started", "call_started"):
            self.adds(event.id, from_told(told.get("origins") or ()))
        label = self.results.get(event.id, OWN)
        for path in (*(told.get("wrote") or ()), *(told.get("files") or ())):
            if is_foreign(label):  # what is the user's own is told by the call itself
                self.files[normal(str(path))] = label
        own = (event.id, event.session, str(told.get("id")))
        if told.get("type") == "call_started":
            running[own] = event
        elif told.get("type") == "call_finished":
            running.pop(own, None)

    def _may_have_written(self, call_id: str, *given: Json) -> None:
        label = self.results.get(call_id, OWN)
        for _, value in (pair for one in given for pair in leaves(one)):
            if is_foreign(label) and isinstance(value, str) and len(value) < 300:
                self.files[normal(value)] = label

    def _replay_start(self, event: CallStarted) -> Label:
        label = from_told(event.origins)
        if label:
            self._is_made_of(label, event.id, event.part_of)
            self.asked[event.id] = event.arguments
            source = f"{event.plugin}.{event.command}"
            if others := frozenset(one for one in label if one.source != source):
                self.inputs[event.id] = others
        return label

    def _is_made_of(self, label: Label, *call_ids: str) -> None:
        for call_id in call_ids:
            if label and call_id:
                self.results[call_id] = self.results.get(call_id, OWN) | label


def _runs_files(known: tuple[CommandSpec, Annotations] | None) -> bool:
    return known is not None and any(use == "run" for _, use in known[1].files)


def is_of(call_id: str, ids: set[str]) -> bool:
    """Check whether a call, or its item, belongs to these calls."""
    return call_id in ids or call_id.rpartition(".")[0] in ids


def normal(path: str) -> str:
    """A path of the workspace in its one spelling."""
    return os.path.normpath(path.strip().replace("\\", "/")).removeprefix("./")
