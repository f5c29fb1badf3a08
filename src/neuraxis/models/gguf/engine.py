"""A model file in memory, by llama.cpp in this process.

The binding contains llama.cpp's server, which handles chat template, grammars and
several slots. It also listens on a loopback port that requires a key.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast
from weakref import WeakValueDictionary

from msgspec import Struct

from neuraxis import settings
from neuraxis.errors import ModelUnavailable, needed
from neuraxis.models.gguf import kv_cache_files
from neuraxis.models.gguf.prompt_cache import States
from neuraxis.specs import Json

CONTEXT = 8192
"""Tokens of all conversations of a file; more cost memory."""
STATES_MB = 64
"""Maximum MiB on disk for the states of constant prompt parts."""
REMEMBERED = 128
"""MiB of prompts that llama.cpp keeps in memory; its default is eight GiB."""
PORTION = 256
"""Tokens of a prompt read at once: a cancelled request ends after them."""

Take = Callable[[Any], bool]
"""Receives each piece of an answer; True ends the answer."""


class Setup(Struct, frozen=True, kw_only=True):
    """Options for running a model file."""

    threads: int = 0
    """0: as many as there are free cores."""
    context: int = CONTEXT
    parallel: int = 2
    """Answers that are generated at the same time; others wait."""
    states_mb: int = STATES_MB
    template: str = ""
    """A chat template that replaces the file's."""


class Engine:
    """One loaded file, shared by all models that name it."""

    def __init__(self, path: Path, setup: Setup) -> None:
        self._key = secrets.token_hex(32)
        self._states = _states(path, setup)
        self._read: set[str] = set()
        self._lock = threading.Lock()
        self._server: Any = _server(path, setup, self._key, self._states)

    def ask(
        self,
        body: Mapping[str, Json],
        constant: int,
        take: Take,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> object:
        """Generate an answer in pieces; return the last one, if any.

        Args:
            body: a request of the OpenAI form.
            constant: number of messages that later requests repeat.
            take: receives the pieces.
            is_stopped: whether nobody waits for the answer any more.
        """
        with self._lock:
            self._restore_state(body, constant, is_stopped)
        if is_stopped():
            return None
        return self._server.handle_chat_completions(dict(body), take)

    def has_tools(self) -> bool:
        """Return whether the chat template shows tools to the model."""
        properties = kv_cache_files.get(
            self._server.listening_address, self._key, "/props"
        )
        caps = cast("Mapping[str, Json]", properties.get("chat_template_caps") or {})
        return bool(caps.get("supports_tools"))

    def _restore_state(
        self, body: Mapping[str, Json], constant: int, is_stopped: Callable[[], bool]
    ) -> None:
        """Restore the constant part of a prompt at its first use."""
        constant_part = {
            "messages": body["messages"][:constant],
            "tools": body.get("tools"),
        }
        text = json.dumps(constant_part, default=dict)
        if self._states is None or not constant or text in self._read:
            return
        self._read.add(text)
        address = self._server.listening_address
        try:
            with self._states.lent(text) as file:
                if file is not None and kv_cache_files.restore(
                    address, self._key, file
                ):
                    return
            # read by itself, so that the saved state has no text of a user
            request = {key: value for key, value in constant_part.items() if value}
            request |= {"max_tokens": 0, "id_slot": 0}
            # in pieces, so that it can be stopped after each portion
            request |= {"stream": True, "return_progress": True}
            pieces: list[Any] = []

            def take(piece: Any) -> bool:
                pieces[:] = piece if isinstance(piece, list) else [piece]
                return is_stopped()

            self._server.handle_chat_completions(request, take)
            if is_stopped():
                self._read.discard(text)  # the next request reads it
                return
            if not pieces or "choices" not in pieces[-1]:
                return  # a template that requires a user message first
            with self._states.passing() as file:
                if kv_cache_files.save(address, self._key, file):
                    self._states.store(text, file.read_bytes())
        except OSError:
            return  # the folder is not writable: the whole prompt is read


_LOADED: WeakValueDictionary[tuple[Path, Setup], Engine] = WeakValueDictionary()
_LOADING = threading.Lock()


def engine_of(path: Path, setup: Setup) -> Engine:
    """Return the loaded file; its memory is freed with its last user.

    Raises:
        MissingExtra: the binding is not installed.
        ModelUnavailable: there is no such file, or llama.cpp cannot load it.
    """
    with _LOADING:
        engine = _LOADED.get((path, setup))
        if engine is None:
            engine = _LOADED[path, setup] = Engine(path, setup)
        return engine


def _server(path: Path, setup: Setup, key: str, states: States | None) -> Any:
    binding = needed("xllamacpp", "local", "A model file")
    if not path.is_file():
        raise ModelUnavailable(f"{path}: there is no such model file.")
    params = binding.CommonParams()
    params.model.path = str(path)
    params.n_ctx = setup.context
    params.n_batch = params.n_ubatch = PORTION
    params.n_parallel = setup.parallel
    params.kv_unified = True  # conversations share one context
    threads = setup.threads or free_threads()
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.verbosity = 0
    params.warmup = False
    params.use_jinja = True
    params.cache_ram_mib = REMEMBERED
    params.api_keys = [key]
    if setup.template:
        params.chat_template = setup.template
    if states is not None:
        params.slot_save_path = f"{states.folder}{os.sep}"
    try:
        return binding.Server(params)
    except Exception as error:
        raise ModelUnavailable(f"{path}: llama.cpp cannot load it: {error}") from error


def _states(path: Path, setup: Setup) -> States | None:
    if setup.states_mb <= 0 or not path.is_file():
        return None
    status = path.stat()  # identifies the file without reading all of it
    return States(
        settings.user_dir("cache") / "states",
        f"{path.resolve()}\n{status.st_size}\n{status.st_mtime_ns}\n"
        f"xllamacpp {_version()}\n{setup.context} {setup.parallel} {setup.template}",
        setup.states_mb * 1_000_000,
    )


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version("xllamacpp")
    except PackageNotFoundError:
        return ""


def free_threads() -> int:
    """Return 2 if two cores are free for this process, else 1.

    Each thread waits for the other by spinning: on busy cores, two threads needed ten
    times the CPU time and the wall time of one.
    """
    cores = (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return 2 if cores - busy > 1 else 1
