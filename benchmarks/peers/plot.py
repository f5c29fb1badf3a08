"""One picture of the last run: the results' JSON files in, peers.svg out (matplotlib, in the venv `plot`).

    $BENCH_VENVS/plot/bin/python plot.py [FILE]

Every panel is a measure; a bar is a peer, least CPU or wall time of its rounds. The scale is logarithmic
where the peers lie far apart. What a peer lacks, or fails at, has no bar.
"""
import json
import pathlib
import sys

import lab

OURS, OTHERS, FLOOR = "#b3261e", "#5b7083", "#c9d1d9"


def _rows(name):
    path = lab.RESULTS / f"{name}.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def _panels():
    """(title, unit, logarithmic, [(peer, value)]) for each measure that was run."""
    p1 = [(r["peer"], r["cpu"]["min"]) for r in _rows("p1_dispatch") if r["mode"] == "async"]
    p2 = [(r["peer"], r["cpu"]["min"]) for r in _rows("p2_turn") if r["mode"] == "async" and r["case"] == "turn"]
    p7 = [(r["peer"], r["cpu"]["min"]) for r in _rows("p7_chain")]
    p8 = [(r["peer"], max(0.0, r["s"] - r["text"])) for r in _rows("p8_early")]
    p4 = [(r["peer"], r["model_chars"]) for r in _rows("p4_large") if r["kind"] == "table5000" and r.get("model_chars")]
    panels = [
        ("One call, model text to text (P1, async)", "CPU, µs", True, p1),
        ("A run of one call and one answer (P2)", "CPU, ms", True, p2),
        ("A chain of ten dependent calls (P7)", "CPU, ms, without the model", True, p7),
        ("Three fetches and a summary (P8)", "s waited beyond the model's text", False, p8),
        ("A 5,000-row table as a result (P4)", "characters to the model", True, p4),
    ]
    return [panel for panel in panels if panel[3]]


def _colour(peer):
    if peer.startswith("neuraxis"):
        return OURS
    return FLOOR if peer.startswith("floor") else OTHERS


def main():
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "peers"
    from matplotlib import pyplot

    panels = _panels()
    if not panels:
        sys.exit(f"no results in {lab.RESULTS}: run a measure first")
    tallest = max(len(values) for *_, values in panels)
    lines = -(-len(panels) // 2)
    figure, axes = pyplot.subplots(lines, 2, figsize=(13, lines * (1 + tallest * 0.27)), squeeze=False)
    for axis in axes.flat[len(panels):]:
        axis.set_visible(False)
    for axis, (title, unit, logarithmic, values) in zip(axes.flat, panels):
        values = sorted(values, key=lambda item: item[1], reverse=True)
        bars = axis.barh([peer for peer, _ in values], [value for _, value in values],
                         color=[_colour(peer) for peer, _ in values])
        axis.bar_label(bars, [f"{value:,.3g}" if value < 1000 else f"{value:,.0f}" for _, value in values],
                       padding=3, fontsize=7)
        if logarithmic:
            axis.set_xscale("log")
        axis.margins(x=0.18)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel(unit, fontsize=8)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else lab.RESULTS / "peers.svg"
    figure.savefig(out, metadata={"Date": None})
    print(out)


if __name__ == "__main__":
    main()
