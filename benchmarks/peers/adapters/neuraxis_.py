"""Ours. P1 takes what our model writes (a block of the intent dialect); there is one way
of running a call, so a synchronous caller is measured through a running loop."""
import asyncio
import contextlib
import json
import time
from typing import TypedDict

import work
from adapters.base import Adapter as Base

RETURNS = {"order": dict[str, object], "nap": str, "step": int, "big": object}
START, END = "<!-- RESPONSE_START -->", "<!-- RESPONSE_END -->"


def _block(calls):
    intents = [{"tool": name, **args} for name, args in calls]
    return f"{START}\n{json.dumps(intents)}\n{END}"


def _as_written(call):
    """The block of a call whose arguments a model wrote badly, in just that way."""
    if call.raw.startswith(START):
        return call.raw
    text = call.raw.replace("{", f'[{{"tool": "{call.name}", ', 1)
    head, brace, tail = text.rpartition("}")
    return f"{START}\n{head}{brace}]{tail}\n{END}" if brace else f"{START}\n{text}\n{END}"


class Item(TypedDict):
    sku: str
    qty: int
    price: float
    gift: bool


class Adapter(Base):
    imports = "neuraxis.session.session"
    dists = "neuraxis"

    def _tool(self, tool, is_async):
        from neuraxis import command

        function = work.make_function(tool, is_async, Item, returns=RETURNS[tool.kind])
        if tool.kind == "nap":
            return command(function, effects="read")
        # the others only compute, and say so: no effects, nothing that blocks
        return command(function, effects="none", blocking=False)

    def _model(self, script):
        from neuraxis.messages import Chunk

        # Written once: what a turn says is there before the clock starts, as args_text is elsewhere.
        blocks = {
            id(turn): _block([(call.name, call.args) for call in turn])
            for turn in script.turns
            if not isinstance(turn, str) and not turn[0].raw
        }

        class Model:
            name = "bench"

            async def stream(self, prompt):
                if script.watch:
                    script.seen_chars = sum(
                        len(m.content) for m in prompt.messages[1:] if m.results
                    )
                turn = script.next()
                if isinstance(turn, str):
                    text = turn
                elif turn[0].raw:
                    text = _as_written(turn[0])
                else:
                    text = blocks[id(turn)]
                if not script.tokens_a_second:
                    yield Chunk(text=text, finish_reason="stop")
                    return
                began = time.perf_counter()
                for at in range(0, len(text), 4):
                    due = began + (at / 4 + 1) / script.tokens_a_second
                    await asyncio.sleep(max(0.0, due - time.perf_counter()))
                    yield Chunk(text=text[at : at + 4])
                yield Chunk(finish_reason="stop")

            async def close(self):
                pass

        return Model()

    def _session(self, tools, script, is_async):
        from neuraxis import Budget, Options, Session
        from neuraxis.settings import Settings

        many = 10**9
        return Session(
            model=self._model(script),
            plugins=[self._tool(t, is_async) for t in tools],
            settings=Settings(),
            budget=Budget(steps=many, steps_per_tool=many, repeats=many, model_calls=many),
            options=Options(early_start=self.variant != "late"),
        )

    def call_input(self, name, args_text, text):
        return f'{START}\n[{{"tool": "{name}", {args_text[1:]}]\n{END}'

    @contextlib.asynccontextmanager
    async def dispatch_async(self, sync_tool=False):
        from neuraxis.execution.cancellation import RunCancellation
        from neuraxis.session.config import (RunState, runtime_of)
        from neuraxis.messages import Completion
        from neuraxis.planning.build import build
        from neuraxis.execution.scheduler import run_plan

        session = self._session([work.ORDER], work.one_call_script(), not sync_tool)
        parts = session._config
        runtime = runtime_of(parts, RunState(), session._emit, RunCancellation())
        decode, encode = session.dialect.decode, session.dialect.encode
        find, known = session.registry.find, session.assets.known

        async def call(text):
            reply = decode(Completion(text=text), next_id=parts.next_id)
            plan = build(reply.calls, find, known_assets=known)
            if plan.problems:
                raise ValueError(plan.problems[0].message)
            return encode(await run_plan(plan, runtime))

        yield call

    @contextlib.asynccontextmanager
    async def agent_async(self, tools, script, sync_tools=False):
        session = self._session(tools, script, not sync_tools)

        async def run():
            script.rewind()
            session.history.clear()
            answer = await session.run("go")
            return answer.text if answer.outcome == "answered" else answer.error

        yield run
        session.close()

    @contextlib.contextmanager
    def agent_sync(self, tools, script):
        session = self._session(tools, script, False)

        def run():
            script.rewind()
            session.history.clear()
            answer = session.run_sync("go")
            return answer.text if answer.outcome == "answered" else answer.error

        yield run
        session.close()

    def chain_script(self, n):
        """The whole chain in one reply: each step on the result of the one before."""
        intents = [{"tool": "step", "x": 0}]
        intents += [{"tool": "step", "x": "{{ previous_result }}"} for _ in range(n - 1)]
        block = f"{START}\n{json.dumps(intents)}\n{END}"
        return work.Script([[work.Call("step", {}, "c0", block)], "done"])

    def early_script(self, ms, tokens_a_second):
        """The whole plan in one reply, streamed at that pace."""
        fetches, (summary,), done = work.early_turns(ms)
        intents = [{"tool": call.name, **call.args} for call in fetches]
        told = " / ".join(f"{{{{ results[{at}] }}}}" for at in range(len(fetches)))
        intents.append({"tool": summary.name, "ms": 0, "tag": told})
        block = f"{START}\n{json.dumps(intents)}\n{END}"
        return work.Script(
            [block, done], tokens_a_second=tokens_a_second, streams=True
        )

    def register(self, tools):
        return self._session(tools, work.one_call_script(), False)

    async def request_text(self, registry):
        return registry.prompt().messages[0].content

    def parse(self, text):
        from neuraxis.parsing.json_scan import pieces

        found = pieces(text)
        values = [item.value.value for item in found if item.value is not None]
        if not values or any(item.fault is not None for item in found):
            raise ValueError("no JSON")
        return values[0] if len(values) == 1 else values
