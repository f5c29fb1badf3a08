"""Our own instruction texts: what they say is so in the session that has them."""

from __future__ import annotations

import pytest

from neuraxis import Options, Session, command
from neuraxis.dialects import DIALECTS
from neuraxis.models.scripted import ScriptedModel


@command(effects="read")
def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("on_error", "said"),
    [
        ("fail_fast", "fails, all later steps are skipped."),
        ("retry", "fails, all later steps are skipped."),
        ("continue", "fails, the steps that depend on it are skipped."),
    ],
)
def test_C19_the_prompt_says_what_a_failed_step_does_here(
    dialect: str, on_error: str, said: str
) -> None:
    """C19 demands that the rest is not run; `continue` is a choice of the program.

    No wire case fixes the sentence.
    """
    options = Options(on_error=on_error)  # type: ignore[arg-type]
    model = ScriptedModel(["x"])
    with Session(model, plugins=[look], dialect=dialect, options=options) as session:
        prompt = session.prompt().messages[0].content
    assert said in prompt
    assert prompt.count("are skipped") == 1
    assert "{left_out}" not in prompt
