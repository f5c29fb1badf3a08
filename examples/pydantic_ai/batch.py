"""Many requests: run it again after a crash, and only what is left is asked."""

import asyncio
import sqlite3
import sys
import tempfile

from pydantic_ai import Agent
from scripted import scripted

ROWS = {f"r{n}": f"Is review {n} kind?" for n in range(1, 7)}
store = sqlite3.connect(
    f"{tempfile.mkdtemp()}/batch.db"
)  # a file of its own: you keep one
store.execute("CREATE TABLE IF NOT EXISTS done (row TEXT PRIMARY KEY, answer TEXT)")
agent = Agent(sys.argv[1] if sys.argv[1:] else scripted("It is kind."))


async def one(row: str, room: asyncio.Semaphore) -> tuple[str, str, bool]:
    found = store.execute("SELECT answer FROM done WHERE row = ?", [row]).fetchone()
    if found:
        return row, found[0], True
    async with room:
        answer = await agent.run(ROWS[row])
    with store:
        store.execute("INSERT INTO done VALUES (?, ?)", [row, answer.output])
    return row, answer.output, False


async def main(most: int) -> None:
    ended, room = [], asyncio.Semaphore(2)
    tasks = [asyncio.create_task(one(row, room)) for row in ROWS]
    try:
        for work in asyncio.as_completed(tasks):
            ended.append(await work)
            if len(ended) == most:
                break  # as if the process had been killed
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    print(len(ended), "ended; known before:", any(earlier for *_, earlier in ended))


asyncio.run(main(most=3))
asyncio.run(main(most=len(ROWS)))
