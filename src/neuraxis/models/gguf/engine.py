"""A model file in memory, by llama.cpp in this process.

The binding holds llama.cpp's own server: chat template, grammars and several slots are
its work. It also listens on a loopback port, which nobody can use without the key.
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
"""Tokens of all conversations of a file; a larger one costs memory."""
STATES_MB = 64
"""What the constant parts of prompts may take on the disk."""
REMEMBERED = 128
"""MiB of prompts that llama.cpp remembers; its own limit is eight GiB."""
PORTION = 256
"""Tokens of a prompt that are read at once: a cancelled request ends behind them."""

Take = Callable[[Any], bool]
"""Gets each piece of an answer; True ends it."""


class Setup(Struct, frozen=True, kw_only=True):
    """How a file is run."""

    threads: int = 0
    """0: as many as are free."""
    context: int = CONTEXT
    parallel: int = 2
    """Answers that are written at the same time; more of them wait."""
    states_mb: int = STATES_MB
    template: str = ""
    """A chat template in place of the file's own."""


class Engine:
    """One loaded file, which all that name it share."""

    def __init__(self, path: Path, setup: Setup) -> None:
        self._key = secrets.token_hex(32)
        self._states = _states(path, setup)
        self._read: set[str] = set()
        self._lock = threading.Lock()
        self._server: Any = _server(path, setup, self._key, self._states)

    def ask(self, body: Mapping[str, Json], constant: int, take: Take) -> object:
        """Have an answer written in pieces; return the last, if any.

        Args:
            body: a request of the OpenAI form.
            constant: how many messages are the same in later requests.
            take: gets the pieces.
        """
        with self._lock:
            self._bring_back(body, constant)
        return self._server.handle_chat_completions(dict(body), take)

    def has_tools(self) -> bool:
        """Return whether the chat template shows tools to the model."""
        found = kv_cache_files.get(self._server.listening_address, self._key, "/props")
        caps = cast("Mapping[str, Json]", found.get("chat_template_caps") or {})
        return bool(caps.get("supports_tools"))

    def _bring_back(self, body: Mapping[str, Json], constant: int) -> None:
        """Restore the constant part of a prompt at its first use."""
        same = {"messages": body["messages"][:constant], "tools": body.get("tools")}
        text = json.dumps(same, default=dict)
        if self._states is None or not constant or text in self._read:
            return
        self._read.add(text)
        address = self._server.listening_address
        try:
            with self._states.lent(text) as file:
                if file is not None and kv_cache_files.fill(address, self._key, file):
                    return
            # read by itself, so that what is saved holds no word of a user
            request = {key: value for key, value in same.items() if value}
            request |= {"max_tokens": 0, "id_slot": 0}
            answer = self._server.handle_chat_completions(request)
            if not isinstance(answer, dict) or "choices" not in answer:
                return  # a template that wants a user's message first
            with self._states.passing() as file:
                if kv_cache_files.save(address, self._key, file):
                    self._states.store(text, file.read_bytes())
        except OSError:
            return  # a folder that cannot be written: the prompt is read as a whole


_LOADED: WeakValueDictionary[tuple[Path, Setup], Engine] = WeakValueDictionary()
_LOADING = threading.Lock()


def engine_of(path: Path, setup: Setup) -> Engine:
    """Return the loaded file; memory is given back with its last user.

    Raises:
        MissingExtra: the binding is not installed.
        ModelUnavailable: there is no such file, or llama.cpp cannot load it.
    """
    with _LOADING:
        found = _LOADED.get((path, setup))
        if found is None:
            found = _LOADED[path, setup] = Engine(path, setup)
        return found


def _server(path: Path, setup: Setup, key: str, states: States | None) -> Any:
    binding = needed("xllamacpp", "local", "A model file")
    if not path.is_file():
        raise ModelUnavailable(f"{path}: there is no such model file.")
    params = binding.CommonParams()
    params.model.path = str(path)
    params.n_ctx = setup.context
    params.n_batch = params.n_ubatch = PORTION
    params.n_parallel = setup.parallel
    params.kv_unified = True  # conversations share the context, whatever each takes
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
    found = path.stat()  # told from others without reading it all
    return States(
        settings.user_dir("cache") / "states",
        f"{path.resolve()}\n{found.st_size}\n{found.st_mtime_ns}\n"
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
    """Return two where two cores are free for us, else one.

    Each thread waits for the other by spinning: where others use the cores, two took
    ten times the processor's time of one, and as much longer.
    """
    cores = (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return 2 if cores - busy > 1 else 1
