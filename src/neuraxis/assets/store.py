"""Store the session's results by call id, inline or as assets.

`keep` stores a value and returns whether the model sees it as JSON; `resolve` returns
the object of a reference. Inline results can be referenced, too; the root of each
result is `{"content": {"command": …, "response": …}}` (rule B53).

With a folder, objects are also saved there, so that a later session finds them, and
memory is bounded: a saved object may leave the memory and is mapped back on demand.
An object that cannot be saved stays in memory and is lost with the process; its
description stays, and reading it reports the loss (rule B60).
"""

from __future__ import annotations

import contextlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.assets.copying import copy_value
from neuraxis.assets.describe import (
    BUDGET,
    TOTAL_BUDGET,
    json_size,
    line_of,
    meta_of,
    short_text,
    size_of,
)
from neuraxis.assets.json_view import drain, holds_objects, to_json_value
from neuraxis.assets.unfolding import unfolds
from neuraxis.errors import StorageError
from neuraxis.formatting import file_name, is_short_json, size_text
from neuraxis.messages import CallError
from neuraxis.references.asset_ref import AssetRef
from neuraxis.references.path import WalkError, walk
from neuraxis.specs import Json

INLINE_BYTES = 16_000
"""Maximum bytes of an inline JSON result; larger ones become assets (B59)."""
MEMORY_BYTES = 1 << 30
"""Maximum bytes of saved objects that stay in memory."""
INLINE_RESULTS = 1000
"""Maximum number of inline results that can still be referred to."""
_PLAIN = frozenset({str, int, float, bool, type(None)})
_WRITTEN = json.JSONEncoder(ensure_ascii=False).encode


class Stored(Struct, frozen=True, kw_only=True):
    """A stored value: its JSON form, or the object if `stored`."""

    stored: bool
    value: Any = None
    meta: Json = None
    bytes: int = 0
    preview: Json = None
    """What the model is shown of an asset's beginning; None: nothing, or no room."""


class Prepared(Struct, frozen=True, kw_only=True):
    """Prepared value that `put` stores under a call id."""

    asset_id: str
    stored: Stored
    inline: Mapping[str, Any] | None = None
    native: Mapping[str, Any] | None = None
    asset: _Asset | None = None


class ReferenceLost(Exception):
    """Error: a reference cannot be resolved; `error` is shown to the model."""

    def __init__(self, error: CallError) -> None:
        super().__init__(error.message)
        self.error = error


class _Asset(Struct):
    root: Mapping[str, Any] | None
    """None: saved and not in memory, or lost."""
    meta: dict[str, Json]
    line: dict[str, Json]
    bytes: int
    saved: bool = False


class AssetStore:
    """Objects of one session; not shared between threads.

    Args:
        folder: where objects are saved; None: they are only in memory.
        inline_bytes: a JSON result above this size is stored; None: never.
        memory_bytes: maximum bytes of saved objects that stay in memory.
    """

    def __init__(
        self,
        *,
        folder: Path | None = None,
        inline_bytes: int | None = INLINE_BYTES,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._folder = folder
        self._inline_bytes = inline_bytes
        self._memory_bytes = memory_bytes
        self._assets: OrderedDict[str, _Asset] = OrderedDict()
        self._inline_results: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
        self._natives: dict[str, Mapping[str, Any]] = {}
        self._memory_used = 0
        # Cached description for the status message, until an asset changes.
        self._ids: tuple[str, ...] | None = ()
        self._description: str | None = ""

    def keep(self, asset_id: str, command: str, value: Any) -> Stored:
        """Store a copy of a command's result under its call id.

        Raises:
            ValueError: a generator gave more items than are stored.
        """
        return self.put(self.prepare(asset_id, command, value))

    def prepare(self, asset_id: str, command: str, value: Any) -> Prepared:
        """Copy, measure and save a result in any thread, for `put`.

        Raises:
            ValueError: a generator gave more items than are stored.
        """
        value = drain(value)
        if is_short_json(value):
            return _inline(asset_id, command, copy_value(value))
        native: Mapping[str, Any] | None = None
        size: int | None = None
        has_json, json_form = to_json_value(value)
        if has_json:
            try:
                size = json_size(json_form)
            # Python refuses to convert an integer of thousands of digits to text.
            except ValueError:
                has_json = False
            else:
                max_inline = self._inline_bytes
                has_json = (
                    not unfolds(json_form) if max_inline is None else size <= max_inline
                )
                if holds_objects(value) or value != json_form:
                    native = _root(command, copy_value(value))
                # A reference resolves to the JSON that the model sees; only a command
                # that declares it gets the object (`native`).
                value = json_form
        if has_json:
            return _inline(asset_id, command, value, native)
        if size is None:
            value = copy_value(value)
            size = size_of(value)
            _freeze(value)  # JSON contains no arrays.
        root = _root(command, value)
        asset = _Asset(
            root=root,
            meta=meta_of(asset_id, root),
            line=line_of(asset_id, root),
            bytes=size,
        )
        prepared = self._saved(asset_id, asset, value, native)
        stored = replace(prepared.stored, preview=self.preview(value))
        return replace(prepared, stored=stored)

    def preview(self, value: Any) -> Json:
        """Return what the model is shown of a stored value; None: nothing."""
        if self._inline_bytes is None:
            return None  # the strict profile, which has no previews (rule B58)
        from neuraxis.assets.preview import preview  # few results are stored

        return preview(value)

    def put(self, prepared: Prepared) -> Stored:
        """Store a prepared value."""
        asset_id, asset = prepared.asset_id, prepared.asset
        if self.known(asset_id):
            self.forget(asset_id)
        if prepared.native is not None:
            self._natives[asset_id] = prepared.native
        if prepared.inline is not None:
            self._inline_results[asset_id] = prepared.inline
            if len(self._inline_results) > INLINE_RESULTS:
                oldest, _ = self._inline_results.popitem(last=False)
                self._natives.pop(oldest, None)
        if asset is not None:
            self._assets[asset_id] = asset
            self._ids = self._description = None
            self._memory_used += asset.bytes
            self._drop_oldest()
        return prepared.stored

    def aside(self) -> AssetStore:
        """Return a copy-on-write view of the store, for new objects only."""
        aside = AssetStore(inline_bytes=self._inline_bytes)
        aside._assets = self._assets.copy()
        aside._inline_results = self._inline_results.copy()
        aside._natives = self._natives.copy()
        aside._ids = aside._description = None
        return aside

    def forget(self, asset_id: str) -> None:
        """Drop a discarded result; its file stays."""
        self._inline_results.pop(asset_id, None)
        self._natives.pop(asset_id, None)
        asset = self._assets.pop(asset_id, None)
        self._ids = self._description = None
        if asset is not None and asset.root is not None:
            self._memory_used -= asset.bytes

    def attach(self, asset_id: str, value: Any, description: str = "") -> Stored:
        """Store an object that the user attached (B61), always as an asset."""
        value = copy_value(value)
        root = {"content": value}
        _freeze(value)
        entry: dict[str, Json] = (
            {"description": description[:120]} if description else {}
        )
        budget = BUDGET - len(json.dumps(entry, ensure_ascii=False))
        asset = _Asset(
            root=root,
            meta={**meta_of(asset_id, root, budget=budget), **entry},
            line={"asset_id": asset_id, "content": short_text(value), **entry},
            bytes=size_of(value),
        )
        return self.put(self._saved(asset_id, asset, value))

    def restore(self, asset_id: str, meta: dict[str, Json], size: int) -> None:
        """Restore an asset of an earlier session from its description (B60).

        Its object is loaded on demand.
        """
        self._assets[asset_id] = _Asset(
            root=None, meta=meta, line=meta, bytes=size, saved=True
        )
        self._ids = self._description = None

    def _saved(
        self,
        asset_id: str,
        asset: _Asset,
        value: Any,
        native: Mapping[str, Any] | None = None,
    ) -> Prepared:
        if self._folder is not None:
            self._save(asset_id, asset, self._folder)
        stored = Stored(stored=True, value=value, meta=asset.meta, bytes=asset.bytes)
        return Prepared(asset_id=asset_id, stored=stored, native=native, asset=asset)

    def _save(self, asset_id: str, asset: _Asset, folder: Path) -> None:
        # Imported on first use: sessions without a folder do not need it.
        from neuraxis.assets.serialize import CannotBeSaved, save

        try:
            # attachments and answers are private to the user, like the journal
            for parent in (folder.parent, folder):
                parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            save(asset.root, self._file(asset_id))
            asset.saved = True
        except CannotBeSaved:
            asset.saved = False
        except OSError as error:
            raise StorageError(f"assets cannot be kept in {folder}: {error}") from error

    def _file(self, asset_id: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{file_name(asset_id)}.nxb"

    def _drop_oldest(self) -> None:
        """Drop the oldest saved objects from memory."""
        for asset_id, asset in self._assets.items():
            if self._folder is None or self._memory_used <= self._memory_bytes:
                return
            if asset.saved and asset.root is not None:
                asset.root = None
                self._natives.pop(asset_id, None)
                self._memory_used -= asset.bytes

    def is_asset(self, asset_id: str) -> bool:
        """Check whether an id is that of a stored object."""
        return asset_id in self._assets

    def known(self, asset_id: str) -> bool:
        """Check whether a reference to this id can be resolved."""
        return asset_id in self._assets or asset_id in self._inline_results

    @property
    def ids(self) -> Sequence[str]:
        """Return the ids of the stored assets, without inline results."""
        if self._ids is None:
            self._ids = tuple(self._assets)
        return self._ids

    @property
    def description(self) -> str:
        """Return the assets' description for each turn; empty if none."""
        if self._description is None:
            self._description = (
                call_errors.asset_list(self.meta()) if self._assets else ""
            )
        return self._description

    def listing(self) -> list[dict[str, Json]]:
        """List stored assets, oldest first: id, origin, kind and size."""
        return [
            {
                "asset_id": asset_id,
                "from": asset.meta.get("content/command", "the user"),
                "is": asset.meta.get("content/response", asset.meta["content"]),
                "size": size_text(asset.bytes),
            }
            for asset_id, asset in list(self._assets.items())
        ]

    def name(self, asset_id: str) -> str:
        """Return the user's name for an object."""
        asset = self._assets.get(asset_id)
        return "" if asset is None else str(asset.meta.get("description", ""))

    def root(self, asset_id: str) -> Mapping[str, Any]:
        """Return the whole asset: `{"content": …}`.

        Raises:
            ReferenceLost: there is no such asset, or its object is lost.
        """
        inline = self._inline_results.get(asset_id)
        if inline is not None:
            return inline
        asset = self._assets.get(asset_id)
        if asset is None:
            raise ReferenceLost(call_errors.asset_not_found(asset_id, self.ids))
        root = asset.root  # another thread may drop it
        if root is not None:
            return root
        if self._folder is None or not asset.saved:
            raise ReferenceLost(call_errors.asset_lost(asset_id))
        from neuraxis.assets.serialize import load

        try:
            return load(self._file(asset_id))
        except StorageError:
            raise ReferenceLost(call_errors.asset_lost(asset_id)) from None

    @property
    def holds_objects(self) -> bool:
        """Whether some inline result was converted from richer objects."""
        return bool(self._natives)

    def native(self, asset_id: str) -> Mapping[str, Any]:
        """Return `root`, with the objects before their conversion to JSON."""
        return self._natives.get(asset_id) or self.root(asset_id)

    def returned(self, asset_id: str, json_form: Any) -> Any:
        """Return the object that a result was before its conversion to JSON."""
        native = self._natives.get(asset_id)
        return json_form if native is None else native["content"]["response"]

    def resolve(self, ref: AssetRef) -> Any:
        """Return the object of a reference.

        Raises:
            ReferenceLost: there is no such asset, or the path is not in it.
        """
        root = self.root(ref.asset_id)
        try:
            return walk(root, ref.field_path)
        except WalkError as error:
            raise ReferenceLost(
                call_errors.asset_path_not_found(
                    ref.asset_id,
                    call_errors.path_text(error.deepest) or "the asset itself",
                    error.available,
                    error.hint,
                )
            ) from None

    def meta(self, budget: int = TOTAL_BUDGET) -> list[dict[str, Json]]:
        """Return the AssetMeta list that the model sees each turn (B55).

        The newest are described completely, older ones on one line, the oldest only
        counted, so that the list stays within `budget` characters.
        """
        entries: list[dict[str, Json]] = []
        remaining = budget
        is_complete = True
        pending = list(self._assets.values())
        while pending:
            asset = pending.pop()
            for form in (asset.meta, asset.line) if is_complete else (asset.line,):
                cost = len(_WRITTEN(form)) + 2
                if cost <= remaining - 60:
                    entries.append(form)
                    remaining -= cost
                    is_complete = is_complete and form is asset.meta
                    break
            else:
                entries.append({"…": f"{len(pending) + 1} older assets are not shown"})
                break
        return entries[::-1]


def _root(command: str, response: Any) -> dict[str, Any]:
    return {"content": {"command": command, "response": response}}


def _inline(
    asset_id: str, command: str, value: Any, native: Mapping[str, Any] | None = None
) -> Prepared:
    stored = Stored(stored=False, value=value)
    return Prepared(
        asset_id=asset_id, stored=stored, inline=_root(command, value), native=native
    )


def _freeze(value: Any) -> None:
    """Make arrays read-only: all references share a stored object."""
    seen: set[int] = set()
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        flags = getattr(item, "flags", None)
        if hasattr(flags, "writeable"):
            # A view of another owner's memory refuses the flag.
            with contextlib.suppress(ValueError):
                cast("Any", flags).writeable = False
        elif isinstance(item, dict | list | tuple):
            container = cast("dict[Any, Any] | list[Any]", item)
            if id(container) not in seen:
                seen.add(id(container))
                parts = container.values() if isinstance(container, dict) else container
                pending += [part for part in parts if type(part) not in _PLAIN]
