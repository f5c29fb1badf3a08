"""Search by meaning: vectors of commands, fused with the words' scores.

The vectors come from a function of the user's, or from the static model that the
package `wordllama` carries; its code is not run, and nothing is downloaded.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from neuraxis.errors import ConfigError, MissingExtra, needed
from neuraxis.plugins.search.index import FIELDS, Entry, Hit

Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""Texts in, a vector for each out; all of one length."""
SHARE = 0.5
"""Weight of the meaning relative to the words."""
CANDIDATES = 200
"""Hits of the words, and nearest ones, that are weighed together."""
_MOST_TOKENS = 512
_BATCH = 64


class Vectors:
    """Vectors of commands by key."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._keys: list[str] = []
        self._places: dict[str, int] = {}
        self._matrix: Any = None

    def update(self, entries: Iterable[Entry]) -> None:
        """Embed these entries in place of the earlier ones.

        Raises:
            ConfigError: the function does not return a vector for each text.
        """
        name, description = FIELDS.index("name"), FIELDS.index("description")
        texts: list[str] = []
        self._keys = []
        for entry in entries:
            self._keys.append(entry.key)
            texts.append(
                f"{entry.texts[name].replace('_', ' ')}: {entry.texts[description]}"
            )
        self._places = {key: place for place, key in enumerate(self._keys)}
        self._matrix = self._unit(texts)

    def fused(self, query: str, hits: Sequence[Hit], most: int) -> list[Hit]:
        """Return the best matches by words and meaning, the best first."""
        if not self._keys:
            return list(hits[:most])
        similarities = self._matrix @ self._unit([query])[0]
        nearest = similarities.argsort()[-CANDIDATES:].tolist()
        words = {hit.key: hit.score / hits[0].score for hit in hits}
        places = {*nearest, *(self._places[key] for key in words)}
        share = SHARE / max(float(similarities.max()), 1e-9)
        scores = {
            (key := self._keys[index]): words.get(key, 0.0)
            + share * float(similarities[index])
            for index in places
        }
        best = sorted(scores, key=scores.__getitem__, reverse=True)[:most]
        return [Hit(key=key, score=scores[key]) for key in best]

    def _unit(self, texts: Sequence[str]) -> Any:
        numpy = _package("numpy")
        vectors = numpy.asarray(self._embed(texts), dtype="float32")
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise ConfigError(
                f"options.embed: expected {len(texts)} vectors of one length, got an "
                f"array of the form {vectors.shape}"
            )
        lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / numpy.maximum(lengths, 1e-9)


def static_embedding() -> Embed:
    """Return the small English model of static vectors in `wordllama`.

    Raises:
        MissingExtra: it is not installed.
    """
    found = importlib.util.find_spec("wordllama")
    if found is None or found.origin is None:
        raise MissingExtra("wordllama", "embeddings", "Search by meaning")
    folder = Path(found.origin).parent
    tensors = _package("safetensors.numpy").load_file(
        folder / "weights" / "l2_supercat_256.safetensors"
    )
    weights = next(iter(tensors.values())).astype("float32")
    tokenizer = _package("tokenizers").Tokenizer.from_file(
        str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
    )
    tokenizer.enable_truncation(_MOST_TOKENS)
    numpy = _package("numpy")

    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        vectors = numpy.zeros((len(texts), weights.shape[1]), dtype="float32")
        for start in range(0, len(texts), _BATCH):
            batch = tokenizer.encode_batch(
                list(texts[start : start + _BATCH]), add_special_tokens=False
            )
            for place, encoded in enumerate(batch, start):
                ids = [number for number in encoded.ids if number < len(weights)]
                if ids:
                    vectors[place] = weights[ids].mean(axis=0)
        return vectors

    return embed


def _package(name: str) -> Any:
    return needed(name, "embeddings", "Search by meaning")
