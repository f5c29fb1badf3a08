"""`neuraxis doctor`: check what works and how to install the rest."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import asdict

from neuraxis import __version__
from neuraxis.cli.display.text import echo, echo_json
from neuraxis.cli.options import Choices, journal_path, plugin_sources
from neuraxis.cli.standard_output import answers_alone
from neuraxis.errors import ManifestError, NeuraxisError
from neuraxis.settings import FILE_NAME, Settings, load


class Finding(Struct, frozen=True, kw_only=True):
    """One line of the report: `ok`, `missing` or `broken`, and advice."""

    what: str
    state: str
    detail: str


@click.command(short_help="Show what works here, what is missing and how to get it.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@answers_alone
def doctor(as_json: bool) -> int:
    """Show what works on this machine and where each setting comes from.

    The plugins in the settings are loaded, and their servers started, to see that they
    work. Exit code 1: something is broken.
    """
    settings, refused = _settings()
    findings = [
        _python(),
        *refused,
        *_faults(settings),
        *_misspelt_tables(settings),
        *_plugins(settings),
        *_extras(),
        _model(settings),
        _dialect(settings),
        _weights(),
        _openai(settings),
        _journal(settings),
        _search(settings),
        *_sandbox(settings),
    ]
    if as_json:
        sources = {
            key: {"value": setting.value, "source": setting.source}
            for key, setting in settings.values.items()
        }
        echo_json({"findings": [*map(asdict, findings)], "settings": sources})
    else:
        for item in findings:
            mark = {"ok": "✓", "missing": "–", "broken": "✗"}[item.state]
            echo(f"{mark} {item.what:<22} {item.detail}")
        for key, setting in sorted(settings.values.items()):
            echo(f"  {key} = {setting.value!r}  (from {setting.source})")
    return 1 if any(item.state == "broken" for item in findings) else 0


def _python() -> Finding:
    detail = f"neuraxis {__version__}, Python {sys.version.split()[0]}, "
    return Finding(what="runtime", state="ok", detail=detail + sys.platform)


def _settings() -> tuple[Settings, list[Finding]]:
    """Return the settings, without invalid files."""
    findings: list[Finding] = []
    for project in (Path.cwd(), None):
        try:
            settings = load(project)
            plugin_sources(Choices(), settings)
            return settings, findings
        except NeuraxisError as error:
            finding = Finding(what="setting", state="broken", detail=str(error))
            if finding not in findings:
                findings.append(finding)
    return Settings(), findings


def _misspelt_tables(settings: Settings) -> list[Finding]:
    """Warn of misspelt tables, which would silently configure nothing."""
    from neuraxis.settings import section_meant

    sources = plugin_sources(Choices(), settings)
    names = {Path(source.rpartition(":")[2]).stem for source in sources}
    findings: dict[str, Finding] = {}
    for key, setting in settings.values.items():
        head = key.partition(".")[0]
        section = section_meant(key)
        if section and head not in names:
            detail = (
                f"{setting.source}: [{head}] is not a known section, and there is no "
                f"plugin of that name. Did you mean [{section}]?"
            )
            findings[head] = Finding(what="setting", state="broken", detail=detail)
    return list(findings.values())


def _model(settings: Settings) -> Finding:
    """Check whether a run would have a model, without asking it."""
    from neuraxis.errors import ConfigError
    from neuraxis.models import find_model

    name = str(settings.get("model") or "local:")
    try:
        find_model(name, settings)
    except ConfigError as error:
        return Finding(what="model", state="broken", detail=str(error))
    except NeuraxisError as error:
        return Finding(what="model", state="missing", detail=str(error))
    detail = f"{name}; try it with `neuraxis models test`"
    if name == "local:":
        detail = "local:, the offline planner, not a language model; -m chooses one"
    return Finding(what="model", state="ok", detail=detail)


def _dialect(settings: Settings) -> Finding:
    from neuraxis.dialects import find_dialect

    name = str(settings.get("dialect") or "intents")
    try:
        find_dialect(name)
    except NeuraxisError as error:
        return Finding(what="dialect", state="broken", detail=str(error))
    return Finding(what="dialect", state="ok", detail=name)


def _faults(settings: Settings) -> list[Finding]:
    from neuraxis.settings import faults_of

    return [
        Finding(what="setting", state="broken", detail=fault)
        for fault in faults_of(settings, variables=True)
    ]


def _plugins(settings: Settings) -> list[Finding]:
    """Load and close each plugin of the settings."""
    from neuraxis.plugins.registry import Plugin, Registry
    from neuraxis.plugins.source import is_builtin
    from neuraxis.session.load_plugins import build_registry

    workspace = Path(str(settings.get("workspace") or "neuraxis-workspace")).absolute()
    findings: list[Finding] = []
    plugins: list[Plugin] = []

    def add(state: str, detail: str) -> None:
        findings.append(Finding(what="plugin", state=state, detail=detail))

    for source in plugin_sources(Choices(), settings):
        try:
            registry = build_registry([source], workspace, None)
        except NeuraxisError as error:
            add("broken", str(error))
            continue
        # no loop ran, so nothing is open in one
        registry.close(lambda coroutine: coroutine.close())
        plugins += registry.plugins
        lost = [
            item for item in registry.plugins if item.problems and not item.commands
        ]
        for item in lost:
            add("broken", str(ManifestError(item.problems)))
        if not lost and not is_builtin(source):
            add("ok", source)
    try:
        Registry(plugins)
    except ManifestError as error:  # two have one name
        add("broken", str(error))
    return findings


def _extras() -> list[Finding]:
    extras = (
        ("xllamacpp", "local", "models that run in this process (GGUF)"),
        ("trafilatura", "web", "pages as Markdown (FETCH_URL)"),
        ("ddgs", "search", "web search without a key"),
        ("polars", "tables", "tables"),
        ("PIL", "images", "pictures"),
        ("matplotlib", "plots", "plots"),
    )
    findings: list[Finding] = []
    for package, extra, purpose in extras:
        is_installed = importlib.util.find_spec(package) is not None
        detail = (
            purpose if is_installed else f"{purpose}: pip install 'neuraxis[{extra}]'"
        )
        state = "ok" if is_installed else "missing"
        findings.append(Finding(what=package, state=state, detail=detail))
    return findings


def _weights() -> Finding:
    from neuraxis.models.gguf import weights

    try:
        path = weights.find()
    except NeuraxisError as error:
        return Finding(what="model file", state="broken", detail=str(error))
    if path is None:
        detail = "not downloaded; get it with `neuraxis models fetch smollm2` (93 MB)"
        return Finding(what="model file", state="missing", detail=detail)
    return Finding(what="model file", state="ok", detail=str(path))


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
    detail = f"set {key}, or name your own server with --base-url"
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
    from neuraxis.builtin.web_search.plugin import PROVIDERS, provider_of

    named = settings.get("search.provider")
    providers = ", ".join(PROVIDERS)
    if named is not None and named not in PROVIDERS:
        detail = f"search.provider: expected one of {providers}, got {named!r}"
        return Finding(what="GOOGLE", state="broken", detail=detail)
    if provider := named or provider_of(settings):
        return Finding(what="GOOGLE", state="ok", detail=f"provider {provider}")
    detail = f"no provider: set search.provider to one of {providers} in {FILE_NAME}"
    return Finding(what="GOOGLE", state="missing", detail=detail)


def _sandbox(settings: Settings) -> list[Finding]:
    from neuraxis.sandbox.process.run import probe
    from neuraxis.sandbox.process.select import MODES

    mode = settings.get("sandbox.mode") or "auto"
    findings = [
        Finding(
            what=f"sandbox: {item.kind}",
            state="ok" if item.works else "broken" if item.kind == mode else "missing",
            detail=item.detail,
        )
        for item in probe()
    ]
    if mode not in MODES:
        detail = f"sandbox.mode: expected one of {', '.join(MODES)}, got {mode!r}"
        findings.append(Finding(what="sandbox", state="broken", detail=detail))
    return findings
