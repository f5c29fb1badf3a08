"""Failover: if one model fails, ask the next.

A model that failed is asked last for a while, so that not every request waits for it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from neuraxis.errors import ModelError, NeuraxisError
from neuraxis.messages import NOTHING_USED, Chunk, Prompt
from neuraxis.models.accumulate import broken_by, close_model, close_stream
from neuraxis.models.media_parts import as_seen_by

if TYPE_CHECKING:
    from neuraxis.models import Model

BETWEEN = ", else "
"""Separator of the models' names in the combined name."""
REST = 60.0
"""Seconds for which a failed model is asked last."""


class Failover:
    """Model made of several; the first one that works answers.

    Args:
        models: the models, in the order in which they are asked.
        now: a clock in seconds.
    """

    def __init__(
        self, models: Sequence[Model], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._models = tuple(models)
        self.sees = True
        self._now = now
        self._failed: dict[int, float] = {}
        self.name = BETWEEN.join(model.name for model in models)
        self.names = tuple(model.name for model in models)
        """Names of the models, in their order."""
        self.guesses = any(getattr(model, "guesses", False) for model in models)

    def __repr__(self) -> str:
        return f"Failover({list(self._models)!r})"

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """Return the completion of the first model that works.

        A model that fails in the middle of its reply ends this one, with
        `ModelError.again`: the next request goes to another model.

        Raises:
            ModelError: the last model's error, which tells the earlier ones, too.
        """
        order = self._order()
        failed, used = "", NOTHING_USED
        for place, index in enumerate(order):
            model = self._models[index]
            has_output, spent = False, used
            yield Chunk(model=model.name)
            chunks = model.stream(as_seen_by(model, prompt))
            try:
                try:
                    async for chunk in chunks:
                        has_output = has_output or bool(chunk.text or chunk.tool_calls)
                        if chunk.usage is not None:
                            used = spent + chunk.usage
                            chunk = replace(chunk, usage=used)
                        yield chunk
                finally:
                    await close_stream(chunks)
                self._failed.pop(index, None)
                return
            except Exception as raised:
                is_own = isinstance(raised, NeuraxisError)
                error = raised if is_own else broken_by(model.name, raised)
                if not isinstance(error, ModelError):
                    raise
                self._failed[index] = self._now()
                if has_output:
                    error.again = error.again or len(order) > 1
                if has_output or place == len(order) - 1:
                    # no reply means no notes, so the error is all that is read
                    error.args = (f"{error}{failed}",)
                    raise error  # noqa: B904 - it has its cause
                failed += f"; before it, {model.name} failed: {error}"
                following = self._models[order[place + 1]].name
                note = f"{model.name} failed, {following} is asked: {error}"
            yield Chunk(note=note)

    async def close(self) -> None:
        """Close all models."""
        for model in self._models:
            await close_model(model)

    def _order(self) -> list[int]:
        """Return the models' places; recently failed ones come last."""
        now = self._now()
        places = range(len(self._models))
        resting = [i for i in places if now - self._failed.get(i, now - REST) < REST]
        return [i for i in places if i not in resting] + resting
