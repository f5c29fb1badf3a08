"""Where values came from: which command answered them, and whether strangers did.

Results, files and the user's words flow in; for the arguments of a call the label of
each value flows out. A label is the set of origins a value was made from; an empty one
means: the user's words, the model's own before it read anything foreign, or commands
that only answer from their arguments.

A reference is followed exactly. What a model writes itself after it was shown foreign
text cannot be followed: it counts as made from all that it was shown, unless it stands
in the user's own words or in a trusted result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path as File

from neuraxis.events import CallFinished, CallStarted, Event, MessageSent, Unknown
from neuraxis.labels import (
    OWN,
    Label,
    Origin,
    Traced,
    from_told,
    is_foreign,
    is_private,
    to_tell,
)
from neuraxis.marks import Marks, covered, marks_of, trusted_fields
from neuraxis.messages import Path
from neuraxis.paths import RESPONSE
from neuraxis.plan import Loop, Step
from neuraxis.plan_references import ITEM
from neuraxis.records import named_values
from neuraxis.references import AssetRef, walk
from neuraxis.snapshots import Snapshot, changed
from neuraxis.specs import CommandSpec, Json
from neuraxis.wording import Wording, is_composed, leaves

IMPORTED = (".py", ".pyc", ".pyw", ".so", ".pth", ".zip", ".egg", ".pyd")
"""Files that a script may load as code without naming them."""
_SHORT = 5


Answers = Callable[[], Iterable[tuple[str, Json]]]
"""Gives the answers that were said, each with its call's id."""


@dataclass(slots=True)
class Origins:
    """What one session knows of where its values came from."""

    results: dict[str, Label] = field(default_factory=dict[str, Label])
    """By call id; a call that is not here answered from its arguments alone."""
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
    _vouched: dict[str, tuple[Path, ...]] = field(
        default_factory=dict[str, tuple[Path, ...]]
    )
    own: dict[str, Label] = field(default_factory=dict[str, Label])
    _told: dict[Label, tuple[Json, ...]] = field(
        default_factory=dict[Label, tuple[Json, ...]]
    )
    _marks: dict[str, tuple[CommandSpec, Marks]] = field(
        default_factory=dict[str, tuple[CommandSpec, Marks]]
    )

    def marks(self, target: str, spec: CommandSpec) -> Marks:
        """The marks of a command's parameters, read once."""
        known = self._marks.get(target)
        if known is None or known[0] is not spec:
            known = self._marks[target] = (spec, marks_of(spec.parameters))
        return known[1]

    def said(self, text: str) -> None:
        """The user said something."""
        self.words.append(text)

    def told(self, call_ids: Iterable[str]) -> None:
        """The model is shown these results (or how they failed)."""
        for call_id in call_ids:
            label = self.results.get(call_id)
            if label:
                self.read |= frozenset(o for o in label if o.open_world)
                self.read_private = self.read_private or is_private(label)
        self._look()

    def _look(self) -> None:
        self.quiet = not self.read and not self.files

    # --- what a call's values came from ----------------------------------------

    def trace(
        self, step: Step, arguments: Json, marks: Marks, answers: Answers
    ) -> tuple[Traced, ...]:
        """Every value of a call that has a label, with the label.

        Args:
            step: as checked, references unresolved.
            arguments: with the references resolved.
            marks: of the command.
            answers: what was said to the model, to look literals up in.
        """
        found: list[Traced] = []
        placed: set[Path] = set()
        for binding in step.bindings:
            placed.add(binding.path)
            refs = binding.template.refs
            label = OWN.union(*(self._label(ref, step) for ref in refs))
            if not binding.template.whole and self.read:
                label |= self.read  # the words around it are the model's
            if label:
                found.append(
                    Traced(
                        path=binding.path,
                        value=walk(arguments, binding.path),
                        label=label,
                        how="reference" if binding.template.whole else "text",
                    )
                )
        for path, ref in step.asset_refs:
            placed.add(path)
            if label := self._label(ref, step):
                found.append(
                    Traced(
                        path=path,
                        value=walk(arguments, path),
                        label=label,
                        how="reference",
                    )
                )
        if self.read:
            found += self._literals(step, placed, marks, answers)
        if marks.files and self.files:
            found += self._contents(arguments, marks)
        return tuple(found)

    def _label(self, ref: AssetRef, step: Step) -> Label:
        """The label of what a reference leads to."""
        if step.item is not None and ref.asset_id == ITEM:
            return self.results.get(f"{step.item.part_of}.{ITEM}", OWN)
        fields = self.fields.get(ref.asset_id)
        path = ref.field_path[len(RESPONSE) :]
        if fields and not self.read and covered(fields, path):
            # chosen before anything foreign was read, and vouched for
            return self.inputs.get(ref.asset_id, OWN)
        return self.results.get(ref.asset_id, OWN)

    def loops(self, step: Step, loop: Loop) -> None:
        """A step is about to be done for each item of a list."""
        refs = [ref for binding in loop.bindings for ref in binding.template.refs]
        refs += [ref for _, ref in loop.asset_refs]
        label = OWN.union(*(self._label(ref, step) for ref in refs))
        if self.read and not refs:
            label |= self.read  # the model wrote the list itself
        if label:
            self.results[f"{step.call.id}.{ITEM}"] = label

    def _literals(
        self, step: Step, placed: set[Path], marks: Marks, answers: Answers
    ) -> Iterable[Traced]:
        """What the model wrote itself and nobody it may trust said before.

        Who or what something destructive is done to must be the user's own word, or of
        a record that the user named: a trusted listing offers, it does not choose.
        """
        wording: Wording | None = None
        strict = marks.trusted_only if step.command.spec.effects.destructive else ()
        plugin = step.command.plugin.name
        for path, value in leaves(step.arguments):
            if path in placed or any(path[: len(at)] == at for at in placed):
                continue
            if value is None or isinstance(value, bool) or value == "":
                continue  # it names nobody
            if wording is None:
                wording = self._wording(plugin, answers)
            if wording.trusted(value) and not (
                covered(strict, path) and not self.is_wished(plugin, value, answers)
            ):
                continue
            yield Traced(
                path=path, value=value, label=self.read, quoted=wording.seen(value)
            )

    def _wording(self, plugin: str, answers: Answers) -> Wording:
        foreign = self.foreign_calls()
        said = tuple(answers())
        return Wording(
            trusted=[
                *self.words,
                *self._named(plugin, said),
                *(value for call_id, value in said if call_id not in foreign),
            ],
            seen=[value for call_id, value in said if call_id in foreign],
        )

    def _named(self, plugin: str, said: Iterable[tuple[str, Json]]) -> Iterable[Json]:
        """Vouched values of the records that the user named.

        In an answer that no stranger had a part in, every field is vouched for. A short
        one is a number in a list of some plugin's own, and nothing to another.
        """
        words = Wording(trusted=self.words, seen=())
        foreign = self.foreign_calls()
        for call_id, answer in said:
            fields = self.fields.get(call_id) if call_id in foreign else None
            if call_id in foreign and not fields:
                continue
            own = self.givers.get(call_id) == plugin
            for value in named_values(answer, fields, words):
                if own or len(str(value)) > _SHORT:
                    yield value

    def is_wished(self, plugin: str, arguments: Json, answers: Answers) -> bool:
        """Whether something in the call stands in the user's own words.

        Also a text that begins with some of them and ends with a trusted answer's:
        `Dinner at Chez Ada` of "an event 'Dinner at {restaurant}'".
        """
        said = tuple(answers())
        words = Wording(trusted=[*self.words, *self._named(plugin, said)], seen=())
        trusted = self._wording(plugin, lambda: said)
        return any(
            words.trusted(value) or is_composed(value, words, trusted)
            for _, value in leaves(arguments)
            if not (value is None or isinstance(value, bool) or value == "")
        )

    def foreign_calls(self) -> frozenset[str]:
        """Ids of the calls whose results strangers had a part in."""
        return frozenset(
            key for key, label in self.results.items() if is_foreign(label)
        )

    def _contents(self, arguments: Json, marks: Marks) -> Iterable[Traced]:
        """The files that arguments name, where strangers had a part in them."""
        for path, value in leaves(arguments):
            use = marks.file_use(path)
            if use in ("read", "run") and isinstance(value, str):
                label = self.of_file(value, run=use == "run")
                if label:
                    yield Traced(path=path, value=value, label=label, how="reference")

    def of_file(self, path: str, *, run: bool = False) -> Label:
        """The label of a file, or of all in a folder; `run`: with what it may load."""
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
        """The label of what a call will answer and write; kept before it runs."""
        call_id = step.call.id
        own = self.answers_plainly(target, call_id, step.command.spec)
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

    def answers_plainly(self, target: str, call_id: str, spec: CommandSpec) -> Label:
        """As `answers`, where no argument has a label: on the way of every call."""
        label = self.own.get(target)
        if label is None:
            effects = spec.effects
            label = OWN
            if effects.declared and (effects.open_world or effects.kind == "read"):
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
            self._vouch(target, call_id, spec)
        return label

    def _vouch(self, target: str, call_id: str, spec: CommandSpec) -> None:
        self.givers[call_id] = target.rpartition(".")[0]
        vouched = self._vouched.get(target)
        if vouched is None:
            vouched = self._vouched[target] = trusted_fields(spec.response)
        if vouched:
            self.fields[call_id] = vouched

    def same(self, call_id: str, earlier: str) -> None:
        """A call is answered with the result of an earlier one."""
        if label := self.results.get(earlier):
            self.results[call_id] = label

    def told_as(self, label: Label) -> tuple[Json, ...]:
        """A label as JSON, for the journal."""
        told = self._told.get(label)
        if told is None:
            told = self._told[label] = to_tell(label)
        return told

    # --- files -----------------------------------------------------------------

    def wrote(self, path: str, label: Label, call_id: str = "") -> None:
        """A call wrote a file of the workspace; it replaces what was known of it."""
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
        """A call has ended: the files it wrote, those of its script among them."""
        before = self.watched.pop(call_id, None)
        if before is not None:
            label = self.results.get(call_id, OWN)
            for path in changed(workspace, before):
                self.wrote(path, label, call_id)
        return tuple(dict.fromkeys(self.written.pop(call_id, ())))

    def may_create(self, workspace: File, path: Json) -> bool:
        """Whether writing here can harm nothing of the user's: a new, plain name."""
        if not isinstance(path, str) or not path or "\\" in path:
            return False
        name = normal(path)
        parts = name.split("/")
        if path.startswith(("/", "~")) or any(part.startswith(".") for part in parts):
            return False
        return name in self.own_files or not os.path.lexists(workspace / name)

    # --- going on later --------------------------------------------------------

    def replay(self, events: Iterable[Event | Unknown]) -> None:
        """Take up what an earlier part of this session knew.

        A call that never told its end may have written any file that it names.
        """
        running: dict[str, CallStarted] = {}
        for event in events:
            match event:
                case MessageSent(sender="user"):
                    self.said(event.content)
                case CallStarted():
                    running[event.id] = event
                    if label := from_told(event.origins):
                        self.results[event.id] = label
                        if event.part_of:
                            whole = self.results.get(event.part_of, OWN)
                            self.results[event.part_of] = whole | label
                case CallFinished():
                    running.pop(event.id, None)
                    for path in event.wrote:
                        self.wrote(path, self.results.get(event.id, OWN))
                case _:
                    pass
        for call_id, event in running.items():
            label = self.results.get(call_id, OWN)
            for _, value in leaves(event.arguments):
                if is_foreign(label) and isinstance(value, str) and len(value) < 300:
                    self.files[normal(value)] = label
        self.told(tuple(self.results))


def _runs_files(known: tuple[CommandSpec, Marks] | None) -> bool:
    return known is not None and any(use == "run" for _, use in known[1].files)


def normal(path: str) -> str:
    """A path of the workspace in its one spelling."""
    return os.path.normpath(path.strip().replace("\\", "/")).removeprefix("./")
