"""Models: find one by name, and request a completion.

A model is anything with a `stream(prompt)` that yields chunks. `find_model` accepts the
names a user writes (`openai:gpt-x`, `http://host/v1#name`, `scripted:file.yaml`,
`local:`); packages add kinds with the entry point group `neuraxis.models`, each a
callable `(rest of the name, settings) -> Model`. A model's code is imported when it is
requested by name.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable, Sequence
from inspect import iscoroutine
from typing import TYPE_CHECKING, Any, Protocol, cast

from neuraxis.errors import ConfigError, NeuraxisError
from neuraxis.formatting import did_you_mean, nearest, refuse
from neuraxis.messages import Chunk, Completion, Prompt
from neuraxis.models.accumulate import Joiner, broken_by, close_stream
from neuraxis.models.media_parts import as_seen_by
from neuraxis.settings import Settings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

GROUP = "neuraxis.models"

# The built-in ones are found without package metadata, which may be stale in a
# checkout; and no installed package can replace the name that a key is sent to.
_BUILT_IN = {
    "openai": "neuraxis.models.openai.model:from_name",
    "openai-responses": "neuraxis.models.openai_responses.model:from_name",
    "anthropic": "neuraxis.models.anthropic.model:from_name",
    "gemini": "neuraxis.models.gemini.model:from_name",
    "vertex": "neuraxis.models.gemini.model:from_vertex_name",
    "bedrock": "neuraxis.models.anthropic.model:from_bedrock_name",
    "azure": "neuraxis.models.openai.model:from_azure_name",
    "scripted": "neuraxis.models.scripted:from_name",
    "local": "neuraxis.models.offline:from_name",
}
_URL_MODEL = "neuraxis.models.openai.model:from_url"
_FORMS = (
    "openai:NAME, openai-responses:NAME, anthropic:NAME, gemini:NAME, vertex:NAME, "
    "bedrock:MODEL_ID, azure:DEPLOYMENT, http(s)://HOST/v1#NAME, scripted:FILE, "
    "local:, local:FILE.gguf, local:hf:OWNER/REPO/FILE"
)
_NOT_CARRIED = (
    "the server's reasoning is not sent back with the results: it gave two calls one "
    "id; it may do worse, or refuse the next request"
)


class Model(Protocol):
    """Language model that answers prompts.

    `stream` is an async generator function. Its chunks end with exactly one that has a
    `finish_reason`; a model that has none raises a `ModelError`. Closing the generator
    early frees its resources. `close` frees all others; a closed model may be used
    again. One model may stream several prompts at the same time. A model with `sees =
    True` gets the parts of messages, any other gets words instead.
    """

    @property
    def name(self) -> str:
        """Return its name in settings, events and errors."""
        ...

    def stream(self, prompt: Prompt) -> AsyncIterator[Chunk]:
        """Stream the completion in chunks."""
        ...

    async def close(self) -> None:
        """Release connections and memory; call it in the loop that streamed."""
        ...


def guesses(model: Model) -> bool:
    """Whether the user must approve its plans before they run."""
    return bool(getattr(model, "guesses", False))


ModelFactory = Callable[[str, Settings], Model]


def model_names() -> tuple[str, ...]:
    """Return the kinds of models: the built-in ones and entry points."""
    names = {point.name for point in _entry_points(group=GROUP)}
    return tuple(_BUILT_IN) + tuple(sorted(names - set(_BUILT_IN)))


def find_models(
    models: str | Model | Sequence[str | Model], settings: Settings | None = None
) -> Model:
    """Return the model of that name; several names form a failover.

    Raises:
        ConfigError: a name or its settings are wrong, or there is none.
        ModelUnavailable: one is known but cannot be used, for example without a key.
    """
    if isinstance(models, str):
        return find_model(models, settings)
    if not isinstance(models, Sequence):
        return models
    chain = [find_models(model, settings) for model in models]
    if not chain:
        raise ConfigError("model: expected at least one model, got an empty list")
    if len(chain) == 1:
        return chain[0]
    from neuraxis.models.failover import Failover  # most sessions have one model

    return Failover(chain)


def find_model(name: str, settings: Settings | None = None) -> Model:
    """Return the model of that name.

    Raises:
        ConfigError: no such kind of model, or its name or settings are wrong.
        ModelUnavailable: it is known but cannot be used, for example without a key.
    """
    chosen = settings or Settings()
    text = name.strip()
    if text.lower().startswith(("http://", "https://")):
        return _load(_URL_MODEL)(text, chosen)
    kind, _, rest = text.partition(":")
    if kind in _BUILT_IN:
        return _load(_BUILT_IN[kind])(rest, chosen)
    for point in _entry_points(group=GROUP, name=kind):
        try:
            factory = cast("ModelFactory", point.load())
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"model {name!r}: {point.value}, which offers {kind!r}, cannot be "
                f"imported: {error}"
            ) from error
        return factory(rest, chosen)
    from neuraxis.models.http.server_hints import (
        suggested_model,  # imported for mistakes only
    )

    kinds = model_names()
    suggestion = suggested_model(text)
    candidates = [suggestion] if suggestion else nearest(kind, kinds)
    hint = did_you_mean([item if ":" in item else f"{item}:" for item in candidates])
    installed = [item for item in kinds if item not in _BUILT_IN]
    forms = ", ".join([_FORMS, *(f"{item}:…" for item in installed)])
    raise ConfigError(
        f"model {name!r}: there is no kind of model called {kind!r}.{hint} Expected "
        f"one of {forms}."
    )


def _entry_points(**selection: str) -> EntryPoints:
    # imported here: scanning metadata is slow, and only other packages need it
    import importlib.metadata

    points = importlib.metadata.entry_points(**selection)
    return cast("EntryPoints", points)


def _load(target: str) -> ModelFactory:
    module, _, function = target.partition(":")
    return cast("ModelFactory", getattr(importlib.import_module(module), function))


async def complete(
    model: Model, prompt: Prompt, on_chunk: Callable[[Chunk], object] | None = None
) -> Completion:
    """Ask the model and join its chunks; `on_chunk` sees each one.

    The stream is closed before this returns or raises, also when the task is
    cancelled. Reasoning is for `on_chunk` only: a completion does not have it.

    Raises:
        ModelError: the model could not be reached, or its stream broke off.
    """
    joined = Joiner()
    chunks = model.stream(as_seen_by(model, prompt))
    if not hasattr(chunks, "__aiter__"):
        if iscoroutine(chunks):
            chunks.close()  # else Python warns that it was never awaited
        refuse(f"model {model.name}: stream", "an `async def` that yields", chunks)
    is_asking = True  # else the exception is the listener's own
    try:
        async for chunk in chunks:
            is_asking = False
            if not isinstance(cast("Any", chunk), Chunk):
                refuse(f"model {model.name}: stream", "each piece as a Chunk", chunk)
            joined.add(chunk)
            if on_chunk is not None:
                on_chunk(chunk)
            is_asking = True
    except Exception as error:
        if isinstance(error, NeuraxisError) or not is_asking:
            raise
        raise broken_by(model.name, error) from error
    finally:
        await close_stream(chunks)
    completion = joined.completion(model.name)
    if on_chunk is not None and joined.carried and not completion.carried:
        on_chunk(Chunk(note=_NOT_CARRIED))
    return completion
