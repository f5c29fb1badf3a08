"""Many requests: run it again after a crash, and only what is left is asked."""

import asyncio
import sys
import tempfile

from neuraxis import Options, Session, run_many
from neuraxis.journal import open_journal
from neuraxis.testing import ScriptedModel

ROWS = {f"r{n}": f"Is review {n} kind?" for n in range(1, 7)}
journal = open_journal(
    f"{tempfile.mkdtemp()}/batch.db"
)  # a file of its own: you keep one
model = sys.argv[1:] or ScriptedModel(lambda prompt: "It is kind.")


def session(key: str) -> Session:
    return Session(model, id=key, journal=journal, options=Options(reopen=True))


async def main(most: int) -> None:
    ended: list[tuple[str, str, bool]] = []
    async for item in run_many(session, ROWS, request=ROWS.__getitem__, at_once=2):
        ended.append((item.row, item.answer.text, item.earlier))
        if len(ended) == most:
            break  # as if the process had been killed
    print(len(ended), "ended; known before:", any(earlier for *_, earlier in ended))


asyncio.run(main(most=3))
asyncio.run(main(most=len(ROWS)))
