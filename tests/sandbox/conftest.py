"""Fixtures for the tests of sandboxes."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(params=["bubblewrap", "landlock"])
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of sandbox that works here."""
    if sys.platform != "linux":
        pytest.skip("only Linux has a sandbox that tests can run")
    from neuraxis.sandbox.process.run import probe

    for found in probe():
        if found.kind == request.param and not found.works:
            pytest.skip(f"{found.kind}: {found.detail}")
    return str(request.param)
