"""The session's objects: results by their call's id, said inline or kept by reference.

A value flows in through `keep`, which tells whether it can be said to the model; a
reference flows in through `resolve` and the object itself comes out. Every result can
be referred to, also one that was said; the root of each is
`{"content": {"command": …, "response": …}}` (rule B53).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from neuraxis import sentences
from neuraxis.assets.describe import meta_of, sayable, size_of
from neuraxis.messages import CallError
from neuraxis.references import AssetRef, WalkError, walk
from neuraxis.specs import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What became of a value: `said` is its JSON form, or it is `stored`."""

    stored: bool
    said: Json = None
    meta: Json = None
    bytes: int = 0


class ReferenceLost(Exception):
    """A reference leads nowhere; `error` is what the model is told."""

    def __init__(self, error: CallError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(slots=True)
class _Asset:
    root: dict[str, Any]
    stored: bool
    bytes: int


class AssetStore:
    """In memory, for one session.

    Args:
        inline_bytes: a JSON answer above this size becomes an asset (rule B59);
            None: never.
    """

    def __init__(self, *, inline_bytes: int | None = 16_000) -> None:
        self._inline_bytes = inline_bytes
        self._assets: dict[str, _Asset] = {}

    def keep(self, asset_id: str, command: str, value: Any) -> Kept:
        """Keep a command's answer under its call's id."""
        can_be_said, said = sayable(value)
        size = size_of(said if can_be_said else value)
        stored = not can_be_said or (
            self._inline_bytes is not None and size > self._inline_bytes
        )
        root = {"content": {"command": command, "response": value}}
        self._assets[asset_id] = _Asset(root=root, stored=stored, bytes=size)
        if not stored:
            return Kept(stored=False, said=said, bytes=size)
        return Kept(stored=True, meta=meta_of(asset_id, root), bytes=size)

    def known(self, asset_id: str) -> bool:
        """Whether a reference to this id could be resolved."""
        return asset_id in self._assets

    @property
    def ids(self) -> Sequence[str]:
        """The ids of the kept assets (not of the answers that were said)."""
        return [key for key, asset in self._assets.items() if asset.stored]

    def resolve(self, ref: AssetRef) -> Any:
        """The object a reference leads to.

        Raises:
            ReferenceLost: there is no such asset, or the path is not in it.
        """
        asset = self._assets.get(ref.asset_id)
        if asset is None:
            raise ReferenceLost(sentences.asset_not_found(ref.asset_id, self.ids))
        try:
            return walk(asset.root, ref.field_path)
        except WalkError as error:
            raise ReferenceLost(
                sentences.asset_path_not_found(
                    ref.asset_id,
                    sentences.path_text(error.deepest) or "the asset itself",
                    error.available,
                    error.hint,
                )
            ) from None

    def meta(self) -> list[dict[str, Json]]:
        """The AssetMeta list that the model sees each round (rule B55)."""
        return [
            meta_of(key, asset.root)
            for key, asset in self._assets.items()
            if asset.stored
        ]
