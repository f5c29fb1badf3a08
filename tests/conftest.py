"""Fixtures that every test may use."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# how long an example takes says how busy the machine is
settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")

_CHECKOUT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session", autouse=True)
def _signals_as_on_a_terminal() -> None:  # pyright: ignore[reportUnusedFunction]
    """What `nohup` and `&` ignore would be ignored by the tests' programs, too."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    for number, handler in usual.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of foreign test material; skips where it is absent."""
    given = os.environ.get("NEURAXIS_SHARED_DATA")
    folder = Path(given) if given else _CHECKOUT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the shared test data is not beside this checkout")
    return folder


@pytest.fixture(autouse=True)
def _no_outside_settings(  # pyright: ignore[reportUnusedFunction]
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No test reads or writes the settings of the person who runs it."""
    for name in list(os.environ):
        if name.startswith(("NEURAXIS_", "OPENAI_")) and name not in (
            "NEURAXIS_SHARED_DATA",
            "NEURAXIS_WEIGHTS",
        ):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("neuraxis-home")
    monkeypatch.setenv("NEURAXIS_HOME", str(home))
