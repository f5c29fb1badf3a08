"""`neuraxis doctor`: what works here, what is missing, and how to get it."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import click

from neuraxis import __version__
from neuraxis.cli.options import journal_path
from neuraxis.errors import NeuraxisError
from neuraxis.later import dataclass
from neuraxis.settings import Settings, load


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line: `ok`, `missing` or `broken`, and what to do."""

    what: str
    state: str
    detail: str


@click.command()
@click.option("--json", "as_json", is_flag=True)
def doctor(as_json: bool) -> int:
    """Say what works on this machine and where each setting came from."""
    from neuraxis.cli.terminal import inert

    settings = load(Path.cwd())  # also with mistakes, which are told
    findings = [
        _python(),
        *_faults(settings),
        *_extras(),
        _weights(),
        _openai(settings),
        _journal(settings),
        _search(settings),
        *_sandbox(settings),
    ]
    if as_json:
        rows = [
            {"what": item.what, "state": item.state, "detail": item.detail}
            for item in findings
        ]
        sources = {
            key: {"value": setting.value, "source": setting.source}
            for key, setting in settings.values.items()
        }
        click.echo(json.dumps({"findings": rows, "settings": sources}, default=str))
    else:
        for item in findings:
            mark = {"ok": "✓", "missing": "–", "broken": "✗"}[item.state]
            click.echo(inert(f"{mark} {item.what:<22} {item.detail}"))
        for key, setting in sorted(settings.values.items()):
            click.echo(inert(f"  {key} = {setting.value!r}  (from {setting.source})"))
    return 1 if any(item.state == "broken" for item in findings) else 0


def _python() -> Finding:
    detail = f"neuraxis {__version__}, Python {sys.version.split()[0]}, "
    return Finding(what="runtime", state="ok", detail=detail + sys.platform)


def _faults(settings: Settings) -> list[Finding]:
    from neuraxis.arguments import faults_of

    return [
        Finding(what="setting", state="broken", detail=fault)
        for fault in faults_of(settings, variables=True)
    ]


def _extras() -> list[Finding]:
    extras = (
        ("xllamacpp", "local", "the embedded model"),
        ("trafilatura", "web", "pages as Markdown (FETCH_URL)"),
        ("ddgs", "search", "web search without a key"),
    )
    found: list[Finding] = []
    for package, extra, purpose in extras:
        here = importlib.util.find_spec(package) is not None
        detail = purpose if here else f"{purpose}: pip install 'neuraxis[{extra}]'"
        state = "ok" if here else "missing"
        found.append(Finding(what=package, state=state, detail=detail))
    return found


def _weights() -> Finding:
    from neuraxis.models.local import weights

    try:
        found = weights.find()
    except NeuraxisError as error:
        return Finding(what="model file", state="broken", detail=str(error))
    if found is None:
        detail = "not fetched yet; `neuraxis models fetch` does it (93 MB)"
        return Finding(what="model file", state="missing", detail=detail)
    return Finding(what="model file", state="ok", detail=str(found))


def _openai(settings: Settings) -> Finding:
    url = settings.get("openai.base_url") or os.environ.get("OPENAI_BASE_URL")
    key = str(settings.get("openai.key_env") or "OPENAI_API_KEY")
    has_key = bool(os.environ.get(key))
    if url or has_key:
        detail = f"{url or 'the default server'}, key in {key}: "
        return Finding(
            what="openai:",
            state="ok",
            detail=detail + ("set" if has_key else "not set"),
        )
    detail = f"set {key}, or --base-url of a server of your own"
    return Finding(what="openai:", state="missing", detail=detail)


def _journal(settings: Settings) -> Finding:
    from neuraxis.journal import open_journal

    path = journal_path(settings)
    try:
        open_journal(path).close()
    except NeuraxisError as error:
        return Finding(what="journal", state="broken", detail=str(error))
    return Finding(what="journal", state="ok", detail=path)


def _search(settings: Settings) -> Finding:
    provider = settings.get("search.provider")
    if provider:
        return Finding(what="GOOGLE", state="ok", detail=f"provider {provider}")
    detail = (
        "no provider set: search.provider = google, searxng, ddgs or documents "
        f"in {Path('neuraxis.toml')}"
    )
    return Finding(what="GOOGLE", state="missing", detail=detail)


def _sandbox(settings: Settings) -> list[Finding]:
    from neuraxis.sandbox.process import probe, probe_wasi

    asked = settings.get("sandbox.mode") == "wasi"
    wasm = str(settings.get("sandbox.wasm") or "")

    return [
        Finding(
            what=f"sandbox: {found.kind}",
            state="ok" if found.works else "missing",
            detail=found.detail,
        )
        for found in (*probe(), probe_wasi(wasm, compile_now=asked))
    ]
