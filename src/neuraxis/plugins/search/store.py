"""Search index on disk, brought up to date with the registry."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Iterable
from pathlib import Path

import msgspec

from neuraxis.plugins.search.index import FIELDS, Entry, Index

VERSION = 2


class Stored(msgspec.Struct, kw_only=True, array_like=True):
    """The form of an index in its file."""

    version: int
    fields: tuple[str, ...]
    keys: list[str]
    digests: list[bytes]
    lengths: bytes
    counts: dict[str, bytes]
    weights: dict[str, tuple[bytes, bytes]]
    """Scores of common words for exactly these entries."""


class Store:
    """Index, digests of its entries, and the file for them."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.index = Index()
        self.digests: dict[str, bytes] = {}
        if file is not None:
            self._load(file)

    def update(self, entries: Iterable[Entry]) -> int:
        """Update the index to these entries; return how many changed.

        The file is written only if an entry changed.
        """
        by_key = {entry.key: entry for entry in entries}
        now = {key: _digest(entry) for key, entry in by_key.items()}
        outdated = [key for key in self.digests if key not in now]
        fresh = [by_key[key] for key in now if self.digests.get(key) != now[key]]
        removed = len(self.index.keys) - len(self.index.numbers) + len(outdated)
        if removed > len(now) // 2 + 100:
            self.index, fresh, outdated = Index(), list(by_key.values()), []
        self.index.remove(outdated)
        self.index.add(fresh)
        self.digests = now
        if fresh or outdated:
            self.index.prepare()
            if self.file is not None:
                self._save(self.file)
        return len(fresh)

    def _load(self, file: Path) -> None:
        """Read the file; one that cannot be read is ignored."""
        try:
            stored = msgspec.msgpack.decode(file.read_bytes(), type=Stored)
        except (OSError, msgspec.MsgspecError, ValueError):
            return
        width = len(FIELDS)
        if stored.version != VERSION or stored.fields != FIELDS:
            return
        lengths: array[int] = array("I")
        counts: dict[str, array[int]] = {}
        try:
            lengths.frombytes(stored.lengths)
            for word, packed in stored.counts.items():
                counts[word] = array("I", packed)
            weights = {
                word: (array("I", numbers), array("f", found))
                for word, (numbers, found) in stored.weights.items()
            }
        except ValueError:
            return
        total = len(stored.keys)
        if len(lengths) != total * width or len(stored.digests) != total:
            return
        numbered = [listed[::2] for listed in counts.values()]
        numbered += [numbers for numbers, _ in weights.values()]
        if any(numbers and max(numbers) >= total for numbers in numbered):
            return  # a file of another program, or broken
        index = self.index
        index.keys = stored.keys
        index.counts, index.weights = counts, weights
        index.lengths = list(zip(*[iter(lengths)] * width, strict=True))
        index.numbers = {key: number for number, key in enumerate(stored.keys) if key}
        index.lengths = [
            sizes if key else ()
            for key, sizes in zip(stored.keys, index.lengths, strict=True)
        ]
        self.digests = {
            key: digest
            for key, digest in zip(stored.keys, stored.digests, strict=True)
            if key
        }

    def _save(self, file: Path) -> None:
        """Write the file, whole or not at all; failures are ignored."""
        index, empty = self.index, (0,) * len(FIELDS)
        stored = Stored(
            version=VERSION,
            fields=FIELDS,
            keys=index.keys,
            digests=[self.digests.get(key, b"") for key in index.keys],
            lengths=array(
                "I", [size for sizes in index.lengths for size in sizes or empty]
            ).tobytes(),
            counts={word: listed.tobytes() for word, listed in index.counts.items()},
            weights={
                word: (numbers.tobytes(), found.tobytes())
                for word, (numbers, found) in index.weights.items()
            },
        )
        beside = file.with_name(f"{file.name}.{os.getpid()}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(msgspec.msgpack.encode(stored))
            os.replace(beside, file)
        except OSError:
            beside.unlink(missing_ok=True)


def _digest(entry: Entry) -> bytes:
    text = "\0".join(entry.texts)
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
