"""P8: a plan of three fetches of 500 ms and a summary, from a model that writes 40 tokens a second.

A peer that takes one reply a step is given the fetches in its first reply and the summary in its second;
one that takes a whole plan is given all of it at once. Early start begins a fetch while the model is still
writing. `text` is the time the model wrote in all; the rest is waiting.
"""
import time

RATE = 40
FETCH_MS = 500


# ---- inside the peer's venv -----------------------------------------------------------------

def in_peer_sample(state):
    """Seconds from the model's first token to the end of the run, of its text, and the model calls."""
    import work
    from adapters.base import NotSupported

    adapter = state.get_adapter()
    script = adapter.early_script(FETCH_MS, RATE)

    async def go():
        async with adapter.agent_async([work.NAP], script) as run:
            began = time.perf_counter()
            return await run(), time.perf_counter() - began
    try:
        final, took = state.runner.run(go())
    except NotSupported:
        with adapter.agent_sync([work.NAP], script) as run:
            began = time.perf_counter()
            final = run()
            took = time.perf_counter() - began
    if final != "done" or script.asked != len(script.turns):
        raise RuntimeError(f"run ended with {final!r} after {script.asked} model calls")
    return {"s": took, "text": script.written_s, "model_calls": script.asked}


# ---- the driver -------------------------------------------------------------------------------

def main():
    import lab
    import peers

    ap = lab.args_parser(__doc__)
    ap.add_argument("--rounds", type=int, default=3)
    args = ap.parse_args()
    names = [n for n in lab.start(args) if n.startswith("floor-msgspec") or not n.startswith("floor")]
    lab.PEERS.update(peers.LATE_PEERS)
    names += list(peers.LATE_PEERS)
    rows, notes = {}, {}
    for p in names:
        w = lab.Worker(p)
        try:
            for _ in range(1 if args.quick else args.rounds):
                got = w.ask("p8_early", "sample")
                if p not in rows or got["s"] < rows[p]["s"]:
                    rows[p] = got
        except (lab.Lacks, lab.Failed) as e:
            notes[p] = f"{type(e).__name__.lower()}: {e}"
        finally:
            w.close()
    lab.save("p8_early", {"notes": notes, "rows": [{"peer": p, **row} for p, row in rows.items()]})
    print(lab.table(["peer", "model calls", "the model's text, s", "whole run, s", "waited beyond the text, s"],
                    [[p, r["model_calls"], f"{r['text']:.2f}", f"{r['s']:.2f}", f"{r['s'] - r['text']:.2f}"]
                     for p, r in rows.items()]))
    for p, note in notes.items():
        print(f"{p}: {note}")


if __name__ == "__main__":
    main()
