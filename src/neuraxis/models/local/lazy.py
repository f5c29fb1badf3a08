"""The text model when it is first needed: settings in, a `Writer` out.

Most requests are planned without it, so neither the binding nor the file is touched
before the first completion. A file that is not here is fetched then, once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from neuraxis.errors import MissingExtra, ModelError, ModelUnavailable
from neuraxis.models.local import weights
from neuraxis.models.local.runner import Ask, LlamaWriter, Writer, Written


class LazyWriter:
    """SmolLM2, found or fetched when it is first asked.

    `on_note` is called with what is fetched and how large it is.
    """

    def __init__(
        self,
        *,
        threads: int | None = None,
        unchecked: bool = False,
        may_fetch: bool = True,
        on_note: Callable[[str], None] | None = None,
    ) -> None:
        self._threads = threads
        self._unchecked = unchecked
        self._may_fetch = may_fetch
        self._on_note = on_note
        self._writer: LlamaWriter | None = None
        self._lock = asyncio.Lock()

    async def write(
        self, ask: Ask, on_text: Callable[[str], None] | None = None
    ) -> Written:
        """One completion.

        Raises:
            MissingExtra: the binding is not installed.
            ModelUnavailable: the file is not here and cannot be fetched.
        """
        async with self._lock:
            if self._writer is None:
                self._writer = LlamaWriter(await self._file(), threads=self._threads)
        return await self._writer.write(ask, on_text)

    async def _file(self) -> Path:
        found = await asyncio.to_thread(weights.find, unchecked=self._unchecked)
        if found is not None:
            return found
        if not self._may_fetch:
            raise ModelUnavailable(
                "the model file is not here, and local.fetch is never. Run "
                "`neuraxis models fetch`, or name a file in NEURAXIS_WEIGHTS."
            )
        if self._on_note is not None:
            self._on_note(weights.SMOLLM2.sentence)
        return await asyncio.to_thread(weights.fetch)

    def close(self) -> None:
        """Give the model's memory back."""
        if self._writer is not None:
            self._writer.close()


class Sparing:
    """A writer for planning, which goes on without a model where there is none."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.failure: str = ""

    async def write(
        self, ask: Ask, on_text: Callable[[str], None] | None = None
    ) -> Written:
        """One completion; empty where the model cannot be had."""
        if not self.failure:
            try:
                return await self._writer.write(ask, on_text)
            except (MissingExtra, ModelError) as error:
                self.failure = str(error)
        return Written(text="", complete=False)

    def close(self) -> None:
        """The wrapped writer stays open."""
