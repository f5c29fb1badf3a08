"""The answer of a run, as data and as JSON for `--json`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.assets.embed import is_picture, is_table
from neuraxis.assets.in_words import in_words
from neuraxis.assets.json_view import to_json_value
from neuraxis.assets.store import AssetStore
from neuraxis.errors import ModelError, NeuraxisError, NoAnswer
from neuraxis.execution.runtime import Runtime
from neuraxis.formatting import sha256
from neuraxis.messages import NOTHING_USED, CallError, Result, Usage
from neuraxis.planning.plan import Plan
from neuraxis.session.config import RunConfig, RunState
from neuraxis.specs import Json

if TYPE_CHECKING:
    from typing_extensions import TypeVar as _TypeVar

    Out = _TypeVar("Out", default=Any, covariant=True)
else:
    Out = TypeVar("Out")

_ELSEWHERE = {
    **dict.fromkeys(("content", "response", "message"), "text"),
    **dict.fromkeys(("data", "final_output", "parsed", "result"), "output"),
    **dict.fromkeys(("tool_calls", "tool_results"), "calls"),
    **dict.fromkeys(("cost", "total_cost"), "usd"),
}
"""What other libraries call a field of an answer."""
Outcome = Literal["answered", "failed", "budget", "waiting", "declined"]
"""How a run ended; `waiting`: a call needs an approval, see `Session.pending`."""
_NO_ERROR = {
    "waiting": "a call waits for approval; session.pending() lists it",
    "declined": "its plan was not approved",
}


class StoredAsset(Struct, frozen=True, kw_only=True):
    """Object that a run stored: a table, a picture, a long text."""

    id: str
    """Its id in references: `asset://a4/…`."""
    read: Callable[[], Any]
    """Return the object."""

    def __repr__(self) -> str:
        try:
            description = in_words(self.read())
        except Exception:  # noqa: BLE001 - a reader may raise anything
            description = "lost"
        return f"StoredAsset(id={self.id!r}, {description})"

    @property
    def value(self) -> Any:
        """Return the object itself."""
        return self.read()

    @property
    def image(self) -> Any:
        """Return the picture, a `PIL.Image.Image`.

        Raises:
            NeuraxisError: it is something else.
        """
        return self._of_kind(is_picture, "picture")

    @property
    def table(self) -> Any:
        """Return the table, as the library that made it has it.

        Raises:
            NeuraxisError: it is something else.
        """
        return self._of_kind(is_table, "table")

    def _of_kind(self, fits: Callable[[Any], bool], kind: str) -> Any:
        value = self.value
        if not fits(value):
            from neuraxis.formatting import with_article

            actual = with_article(type(value).__name__)
            raise NeuraxisError(f"asset {self.id}: expected a {kind}, it is {actual}")
        return value


class Answer(Struct, Generic[Out], frozen=True, kw_only=True, repr_omit_defaults=True):
    """Outcome of one run of a session."""

    text: str
    """The model's final text, with its references replaced."""
    outcome: Outcome
    """How it ended; a cancelled run raises `CancelledError` and has no answer."""
    calls: tuple[Result, ...] = ()
    """Results of all calls, in the order of their plans."""
    plans: tuple[Plan, ...] = ()
    """The checked plans of the model's replies, in order."""
    problems: tuple[CallError, ...] = ()
    """Errors in replies, in order, as the model was shown them."""
    assets: tuple[StoredAsset, ...] = ()
    """Objects stored during this run."""
    files: tuple[str, ...] = ()
    """Paths of written files that are still there, relative to the workspace."""
    usage: Usage = NOTHING_USED
    """Tokens of all replies, as the server reports them; 0 if it does not."""
    usd: float = 0.0
    """Cost of all replies with a known price, in US dollars."""
    error: str = ""
    """Why the run failed, or why the end of an answered run was not stored."""
    checked: object = None
    """The value that `output` returns."""
    failure: ModelError | None = None
    """The error of the model, which `check` raises."""

    def check(self) -> Self:
        """Return this answer, or raise why there is none.

        Raises:
            ModelError: the model could not be reached.
            NoAnswer: the run failed otherwise, met a limit, waits, or was declined.
        """
        if self.outcome == "answered":
            return self
        if self.failure is not None:
            raise self.failure
        why = reason_unanswered(self)
        raise NoAnswer(f"the request was not answered ({self.outcome}): {why}")

    def to_json(self) -> dict[str, Json]:
        """Return the answer as JSON; an asset's object becomes its id."""
        return {
            "text": self.text,
            "outcome": self.outcome,
            "output": to_json_value(self.checked)[1],
            "calls": [result_json(result) for result in self.calls],
            "problems": [call_errors.to_json(problem) for problem in self.problems],
            "assets": [asset.id for asset in self.assets],
            "files": list(self.files),
            "usage": {
                "input_tokens": self.usage.input_tokens,
                "output_tokens": self.usage.output_tokens,
            },
            "usd": self.usd,
            "error": self.error,
        }

    @property
    def output(self) -> Out:
        """Return the answer as the session's `output` type.

        Without such a type it is None, and the answer is `text`.

        Raises:
            ModelError: the model could not be reached.
            NoAnswer: the run did not end with an answer.
        """
        return cast("Out", self.check().checked)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Imported for error messages only.
            from neuraxis.formatting import did_you_mean, nearest

            names = (*self.__struct_fields__, "output", "check", "asset")
            equivalent = _ELSEWHERE.get(name)
            if equivalent == "output" and self.checked is None:
                equivalent = "text"  # a session without `output=` has no object
            hint = did_you_mean([equivalent] if equivalent else nearest(name, names, 1))
            raise AttributeError(f"an Answer has no {name!r}.{hint}")

    def _repr_html_(self) -> str:
        from neuraxis.session.html import render_answer  # for notebooks only

        return render_answer(
            self.text,
            self.error,
            self.plans,
            self.calls,
            [(asset.id, asset.read) for asset in self.assets],
            self.files,
        )

    def asset(self, id: str) -> StoredAsset:
        """Return an object that the run stored.

        Raises:
            NeuraxisError: the run stored no object with this id.
        """
        for asset in self.assets:
            if asset.id == id:
                return asset
        stored = ", ".join(asset.id for asset in self.assets) or "none"
        raise NeuraxisError(
            f"asset {id}: this run did not store it; it stored {stored}"
        )


def reason_unanswered(answer: Answer) -> str:
    """Return why a request was not answered."""
    return answer.error or answer.text or _NO_ERROR.get(answer.outcome, answer.outcome)


def answer_of(
    state: RunState,
    outcome: Outcome,
    error: str | ModelError,
    runtime: Runtime,
    config: RunConfig,
) -> Answer:
    """Return the answer of a run that ended."""
    return Answer(
        text="\n\n".join(state.texts),
        outcome=outcome,
        calls=tuple([_as_returned(result, config.assets) for result in state.results]),
        assets=tuple(
            [
                StoredAsset(id=item.call.id, read=partial(_stored, item, config.assets))
                for item in state.results
                if item.stored
            ]
        ),
        files=state.existing_files(config.workspace),
        usage=runtime.usage.tokens,
        usd=runtime.usage.usd,
        error=str(error),
        failure=error if isinstance(error, ModelError) else None,
        problems=tuple(state.problems),
        plans=tuple(state.plans),
        checked=state.output,
    )


def _as_returned(result: Result, assets: AssetStore) -> Result:
    """Return a result with the object that its command returned."""
    value = assets.returned(result.call.id, result.value)
    if result.status != "done" or value is result.value:
        return result
    return replace(result, value=value)


async def embed_assets(
    texts: Sequence[str], config: RunConfig, state: RunState
) -> list[str]:
    """Return the answer's texts with the assets they embed (rule B62)."""
    if "<|" not in "".join(texts):
        return [*texts]
    # imported here: few answers embed assets, and the import would delay the first run
    from neuraxis.assets.embed import CannotBeShown, embed
    from neuraxis.execution.offload import in_thread_if
    from neuraxis.sandbox.files.call_files import CallFiles
    from neuraxis.sandbox.files.paths import FileRefused
    from neuraxis.sandbox.files.workspace import Quota, read_bytes, write_bytes

    setting: Any = config.settings.get("files.file_bytes", Quota().file_bytes)
    quota = Quota(file_bytes=int(setting))

    def write(name: str, data: bytes) -> str:
        if config.files is None:
            return write_bytes(config.workspace, name, data, quota=quota)
        files = CallFiles(history=config.files, call_id="", warn=lambda text: None)
        return files.write(name, data, quota)

    def save(name: str, data: bytes) -> str:
        stem, _, ending = name.rpartition(".")
        # the first name may be that of another session's object, which stays
        for one in (name, f"{stem}-{sha256(data)[:8]}.{ending}"):
            with suppress(FileRefused):
                written = write(one, data)
                state.files.append(written)
                return written
            with suppress(FileRefused):
                if read_bytes(config.workspace, one, limit=len(data)) == data:
                    return one
        raise CannotBeShown(name)

    given = config.assets, save, quota.file_bytes
    return [await in_thread_if(True, embed, text, *given) for text in texts]


def took_too_long(state: RunState, config: RunConfig) -> str:
    """Return the time limit's error, with the calls that it cut off."""
    specs = config.registry.targets
    cut_off = [
        f"{result.call.target} ({result.call.id})"
        for result in state.results
        if result.error is not None
        and result.error.code in ("cancelled", "outcome_unknown")
        and (spec := specs.get(f"{result.plugin}.{result.command}")) is not None
        and not spec.effects.readonly
    ]
    return call_errors.run_too_long(config.budget.seconds, cut_off)


def _stored(result: Result, assets: AssetStore) -> Any:
    """Return a stored object, which may have left the memory."""
    return assets.native(result.call.id)["content"]["response"]


def result_json(result: Result) -> dict[str, Json]:
    """Return one result as JSON; an asset's object becomes its id."""
    error = None if result.error is None else call_errors.to_json(result.error)
    return {
        "id": result.call.id,
        "tool": result.call.target,
        "status": result.status,
        "value": None if result.stored else to_json_value(result.value)[1],
        "asset": result.call.id if result.stored else None,
        "error": error,
        "warnings": list(result.warnings),
        "seconds": round(result.seconds, 6),
    }
