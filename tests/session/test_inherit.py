"""What a session inside of a command begins with (rule D12); see `test_nesting`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from neuraxis import ConfigError, Context, Policy, Session, command
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.provenance.tracker import Origins
from neuraxis.policy.rules import DEFAULT
from neuraxis.session.inherit import Inherited, inherit, initial_origins
from neuraxis.settings import Settings


def test_without_a_command_around_everything_is_the_default() -> None:
    """And nothing is known of files or words."""
    over = inherit(None, None)
    assert over == Inherited(secrets=over.secrets)
    assert (over.policy, over.outer, over.depth) == (DEFAULT, None, 0)
    assert over.origins(Path(), Settings()).request == []
    assert initial_origins(None, Origins()) == ()


@pytest.mark.parametrize("outer", [None, "x", object()])
def test_D12_only_the_context_of_a_running_command_will_do(outer: Any) -> None:
    """It says what to write."""
    with pytest.raises(ConfigError, match="`context: Context` among its parameters"):
        inherit(Context(workspace=Path(), outer=outer), None)


def test_D12_what_is_taken_over_is_that_of_the_run(tmp_path: Path) -> None:
    """Settings, workspace, hosts, yes and secrets, one level deeper."""
    seen: list[Inherited] = []

    @command(effects="none")
    def look(context: Context) -> str:
        """Look."""
        seen.append(inherit(context, None))
        return "ok"

    model = ScriptedModel(['[{"tool": "look"}]', "ok"])
    given = Settings().override({"search.url": "http://a"}, "test")
    with Session(
        model=model,
        plugins=[look],
        settings=given,
        workspace=tmp_path,
        policy=Policy(allow_hosts=["localhost:1"], yes_to=["a.*"]),
    ) as session:
        session.run_sync("go")
    (over,) = seen
    assert over.settings is given
    assert (over.workspace, over.depth) == (tmp_path, 1)
    assert over.policy.allow_hosts == ["localhost:1"]
    assert over.policy.yes_to == ["a.*"]
    assert over.approve is None  # nobody can be asked around it
    assert over.origins(tmp_path, given).request == ["go"]
