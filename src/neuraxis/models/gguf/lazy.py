"""Load the text model on first use.

Most requests are planned without it, so neither the binding nor the file is touched
before the first completion. A file that is not here is fetched then, once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from neuraxis.errors import ModelUnavailable
from neuraxis.models.gguf import weights
from neuraxis.models.gguf.kv_store import States
from neuraxis.models.gguf.llama import (
    CONTEXT,
    Ask,
    LlamaWriter,
    Written,
    binding_version,
)

STATES_MB = 64
"""What the constant parts of prompts may take on the disk."""


class LazyWriter:
    """SmolLM2, found or fetched when it is first asked.

    `on_note` is called with what is fetched and how large it is. `states_mb`: how much
    the constant parts of prompts may take on the disk, read; 0: nothing is kept.
    """

    def __init__(
        self,
        *,
        threads: int | None = None,
        unchecked: bool = False,
        may_fetch: bool = True,
        states_mb: int = STATES_MB,
        on_note: Callable[[str], None] | None = None,
    ) -> None:
        self._threads = threads
        self._unchecked = unchecked
        self._may_fetch = may_fetch
        self._states_mb = states_mb
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
                path = await self._file()
                self._writer = LlamaWriter(
                    path, threads=self._threads, states=self._states(path)
                )
        return await self._writer.write(ask, on_text)

    def _states(self, path: Path) -> States | None:
        if self._states_mb <= 0:
            return None
        model = weights.SMOLLM2.sha256
        if self._unchecked:  # any file: told from others without reading it all
            found = path.stat()
            model = f"{path.resolve()}\n{found.st_size}\n{found.st_mtime_ns}"
        return States(
            weights.folder().parent / "states",
            f"{model}\nxllamacpp {binding_version()}\ncontext {CONTEXT}",
            self._states_mb * 1_000_000,
        )

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
