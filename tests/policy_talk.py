"""Sessions of scripted replies whose questions a test answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from neuraxis import Session, command
from neuraxis.events import ApprovalAsked
from neuraxis.models.scripted import ScriptedModel
from neuraxis.settings import Settings

Call = dict[str, Any]
Say = Callable[[ApprovalAsked], bool | str]
FILES = tuple(f"neuraxis:{name}" for name in ("files", "python_file", "assets"))


@command(
    effects={"kind": "read", "others_write": True, "public": True}, sends_out=["url"]
)
def open_page(url: str) -> str:
    """Open a page."""
    return "print('theirs')"


class Talk:
    """A session of scripted replies, and what it asked during a request."""

    def __init__(
        self,
        folder: Path,
        say: Say = lambda asked: False,
        plugins: Sequence[Any] = (),
        earlier: str = "",
        **given: Any,
    ) -> None:
        self.replies: list[str] = []
        self.asked: list[ApprovalAsked] = []
        self.say = say
        given |= {
            "model": ScriptedModel(lambda prompt: self.replies.pop(0)),
            "plugins": [*FILES, open_page, *plugins],
            "workspace": folder,
            "settings": Settings(),
            "approve": self.approve,
        }
        self.session: Session[Any]
        self.session = Session.open(earlier, **given) if earlier else Session(**given)

    def approve(self, asked: ApprovalAsked) -> bool | str:
        self.asked.append(asked)
        return self.say(asked)

    def ask(
        self, request: str, *plans: list[Call], attach: Sequence[Path] = ()
    ) -> list[ApprovalAsked]:
        self.asked.clear()
        self.replies += [*map(json.dumps, plans), "Done."]
        self.session.run_sync(request, attach=attach)
        return [*self.asked]
