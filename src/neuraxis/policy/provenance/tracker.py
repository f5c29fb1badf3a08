"""Provenance tracker: what came from outside, and what is private.

It stores the labels of results and files, and of what references lead to (`trace`
labels a call's arguments). A label is the set of origins a value was made from; an
empty one means: the user's words, the model's own before it read anything from
outside, or commands whose results depend on their arguments only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy

from msgspec import Struct
from msgspec.structs import replace

from neuraxis.messages import Path
from neuraxis.planning.plan import ITEM, Loop, Step, belongs_to, refs_of
from neuraxis.policy.provenance.labels import (
    ATTACHED,
    FILES,
    OWN,
    PROGRAM,
    Label,
    Origin,
    Traced,
    is_outside,
    is_private,
)
from neuraxis.references.asset_ref import AssetRef
from neuraxis.references.path import RESPONSE
from neuraxis.sandbox.files.paths import normal
from neuraxis.schema.annotations import is_covered


class Origins(Struct):
    """State of one session's provenance: the labels of its values."""

    results: dict[str, Label] = {}
    """Labels of results by call id; without one, it depends on the arguments only."""
    files: dict[str, Label] = {}
    """Labels of the files that calls of this session wrote, by path."""
    fresh: set[str] = set()
    """Those of them that calls of this request wrote."""
    earlier: set[str] = set()
    """Those of the previous request, until this one reads from outside itself."""
    before: tuple[str, ...] = ()
    """The previous request, until this one reads from outside itself."""
    news: set[str] = set()
    """Calls of this request that brought in new content from outside."""
    copies: set[str] = set()
    """Files that contain content from outside word for word."""
    copied: set[str] = set()
    """All files that ever did: `undo` may restore an old version."""
    read: Label = OWN
    """Everything from outside that the model was shown."""
    private: set[str] = set()
    """Calls that read private content, shown or not: what follows may depend on it."""
    request: list[str] = []
    """What the user wrote in this request; for a nested session, in the outer one."""
    instructions: str = ""
    """The program's instructions; their words count as the user's in each request."""
    sent: set[str] = set()
    """Values that were sent out since the user last wrote, such as addresses."""
    written: dict[str, list[str]] = {}
    """Files that each running call wrote."""
    vouched: dict[str, tuple[tuple[Path, ...], Label]] = {}
    """By call id: the vouched fields of a result, and the label of the arguments."""
    handed: Label | None = None
    """In a nested session: the label of what the command hands to it."""
    undeclared_outside: bool = False
    """Whether a command that says nothing of it counts as one that others write."""
    private_sources: frozenset[str] = frozenset()
    """Commands whose answers are private here, whatever they declare."""
    walls: bool = True
    """Whether scripts run without network, in a sandbox."""
    plan: tuple[str, ...] = ()
    """The calls of the plan that is running, in order."""
    unseen: list[str] = []
    """Attached objects and the program's own results; the next request shows them."""
    copying: set[str] = set()
    """Calls that read something from outside, or were handed it by reference."""
    kept: dict[str, Label] = {}
    """What stays in the files that each running call changes or moves."""

    def aside(self) -> Origins:
        """Return a copy, for calls whose results may be discarded."""
        names = self.__struct_fields__
        return replace(self, **{name: copy(getattr(self, name)) for name in names})

    def add_request(self, text: str) -> None:
        """Record a request; a nested one is not the user's words."""
        self.earlier, self.before = set(), ()
        if self.handed is None:
            self.earlier, self.before = self.fresh, tuple(self.request)
            self.sent.clear()
            self.request[:] = [text]
        self.fresh = set()
        self.shown(self.unseen)
        self.unseen.clear()
        self.news.clear()

    @property
    def own_words(self) -> tuple[str, ...]:
        """The texts whose words are the user's: request and instructions."""
        return (self.instructions, *self.request)

    def shown(self, call_ids: Iterable[str]) -> None:
        """Record that the model sees these results, or how they failed."""
        for call_id in call_ids:
            if label := self.results.get(call_id):
                self.reads(label)
            if call_id in self.news:
                self.earlier, self.before = set(), ()

    def planned(self, steps: Sequence[Step]) -> None:
        """Record a plan's steps; one that fails stops the later ones."""
        self.plan = tuple([step.call.id for step in steps])
        for step in steps if self.read else ():
            self._reads_private(self._answer_of(step), step.call.id)

    def may_tell(self, call_id: str) -> bool:
        """Whether a call may disclose something private.

        The later calls of its plan cannot influence it.
        """
        own = call_id.partition(".")[0]
        at = self.plan.index(own) + 1 if own in self.plan else len(self.plan)
        return not self.private.issubset(self.plan[at:])

    def reads(self, label: Label) -> None:
        """Record that the model sees content with this label."""
        self.read |= frozenset(o for o in label if o.open_world)
        self._reads_private(label, "shown")

    # --- what references lead to -----------------------------------------------

    def label(self, ref: AssetRef, step: Step) -> Label:
        """Return the label of a reference's target."""
        if step.item is not None and ref.asset_id == ITEM:
            return self.results.get(f"{step.item.part_of}.{ITEM}", OWN)
        fields, inputs = self.vouched.get(ref.asset_id, ((), OWN))
        if not self.read and is_covered(fields, ref.field_path[len(RESPONSE) :]):
            # chosen before anything from outside was read, and vouched for
            return inputs
        return self.results.get(ref.asset_id, OWN)

    def fails(self, step: Step) -> None:
        """Record that a step's error may quote the targets of its references."""
        refs = refs_of(step) + (refs_of(step.loop) if step.loop else [])
        self.adds(step.call.id, OWN.union(*(self.label(ref, step) for ref in refs)))

    def loops(self, step: Step, loop: Loop) -> None:
        """Record that a step repeats for each item of a list."""
        refs = refs_of(loop)
        label = OWN.union(*(self.label(ref, step) for ref in refs))
        if self.read and not refs:
            label |= self.read  # the model wrote the list itself
        if label:
            self.results[f"{step.call.id}.{ITEM}"] = label

    def answers(self, step: Step, traced: Sequence[Traced]) -> Label:
        """Return the label of a call's result; store it before running."""
        call_id = step.call.id
        inputs = OWN.union(*[item.label for item in traced])
        self.vouched.pop(call_id, None)
        if step.command.vouched and call_id not in self.results:  # no second attempt
            self.vouched[call_id] = step.command.vouched, inputs
        label = self._answer_of(step)
        is_news = is_outside(label)
        if is_news:  # it may put what it reads into a file
            self.copying.add(call_id)
        for item in traced:
            if is_outside(item.label) and item.how not in ("literal", "near"):
                self.copying.add(call_id)
            is_news = is_news or self._is_news(item, step)
        if is_news:
            self.news.add(call_id.partition(".")[0])
        self.is_made_of(label | inputs, call_id)
        return label | inputs

    def _is_news(self, item: Traced, step: Step) -> bool:
        """Whether a value brings new content from outside into the request."""
        if not is_outside(item.label):
            return False
        if item.how == "file":  # a script reads more than itself
            is_run = step.command.marks.file_use(item.path) == "run"
            name = normal(str(item.value))
            known = name in self.earlier and item.label == self.files.get(name)
            return is_run or not known or name in self.copies
        effects = step.command.spec.effects
        is_read = effects.readonly or effects.asks_inside
        return item.how == "near" or (is_read and item.how in ("reference", "text"))

    def _answer_of(self, step: Step) -> Label:
        """Return the label of a command's own answer (rule Outside)."""
        target, effects = step.tool, step.command.spec.effects
        if effects.kind == "none":
            return OWN
        outside = effects.open_world if effects.declared else self.undeclared_outside
        # an agent's answer has the labels of what it read, from `adds`
        public = effects.public or effects.asks_inside
        private = not public or target in self.private_sources
        if not outside and not private:
            return OWN
        return frozenset((Origin(source=target, open_world=outside, private=private),))

    def same(self, call_id: str, earlier: str) -> None:
        """Record that a call returns the result of an earlier one."""
        self.is_made_of(self.results.get(earlier, OWN), call_id)

    def attached(self, asset_id: str, *, own: bool = False) -> None:
        """Record an attached object; `own`: nobody outside wrote it."""
        label = self.handed
        if label is None:
            label = PROGRAM if own else ATTACHED
        self.adds(asset_id, label)
        self.unseen.append(asset_id)
        self.reads(label)  # the model sees its description

    def sums_up(self, asset_id: str) -> Label:
        """Return the label of an object made of everything so far."""
        label = OWN.union(self.read, *self.results.values())
        self.is_made_of(label, asset_id)
        return label

    def adds(self, call_id: str, label: Label) -> None:
        """Add origins to an attached object or a running call."""
        self.is_made_of(label, call_id)
        if is_outside(label):
            self.news.add(call_id.partition(".")[0])
        self.vouched.pop(call_id, None)

    def forget(self, gone: set[str]) -> None:
        """Remove labels of discarded calls and their items."""
        for known in (self.results, self.vouched):
            for call_id in [one for one in known if belongs_to(one, gone)]:
                del known[call_id]

    # --- files -----------------------------------------------------------------

    def wrote(
        self, path: str, label: Label, call_id: str = "", *, is_copy: bool = True
    ) -> None:
        """Record a file that a call wrote; it replaces the file's label.

        `is_copy`: whether others' text is in it word for word, if no call is named.
        """
        name = normal(path)
        label |= self.kept.get(call_id, OWN)
        keeps_copy = call_id in self.kept and name in self.copies
        self.files[name] = label if is_outside(label) else OWN
        self.copies.discard(name)
        if call_id:
            self.written.setdefault(call_id, []).append(path)
            self.fresh.add(name)
            is_copy = call_id in self.copying or keeps_copy
        if is_copy and self.files[name]:
            self.copies.add(name)
            self.copied.add(name)

    def keeps(self, call_id: str, label: Label, *, moved: bool) -> None:
        """Record the label of what stays in the files of a call."""
        if is_outside(label):
            self.kept[call_id] = label
            if moved:
                self.copying.add(call_id)

    def restored(self, path: str) -> None:
        """Record a file that `undo` restored: others may have written it."""
        self.files.pop(normal(path), None)
        if normal(path) in self.copied:
            self.wrote(path, FILES)

    def ended(self, call_id: str) -> tuple[str, ...]:
        """Record the end of a call; return the files it wrote."""
        self.copying.discard(call_id)
        self.kept.pop(call_id, None)
        return tuple(dict.fromkeys(self.written.pop(call_id, ())))

    def copies_among(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return the files that contain others' text word for word."""
        return tuple(path for path in paths if normal(path) in self.copies)

    def is_made_of(self, label: Label, call_id: str) -> None:
        """Add origins to a result, and to the loop it belongs to."""
        self._reads_private(label, call_id)
        for name in {call_id, call_id.partition(".")[0]} if label else ():
            self.results[name] = self.results.get(name, OWN) | label

    def _reads_private(self, label: Label, call_id: str) -> None:
        if is_private(label):
            self.private.add(call_id.partition(".")[0])
