"""A question about data: the table and the chart never pass through the model."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import polars
from matplotlib import pyplot
from pydantic_ai import Agent, RunContext
from scripted import scripted


@dataclass
class Objects:
    """What the tools hand on to each other."""

    kept: dict[str, polars.DataFrame] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    rows: list[dict] = field(default_factory=list)


agent = Agent(
    sys.argv[1]
    if sys.argv[1:]
    else scripted(
        [("group_sum", {"table": "orders", "by": "month", "column": "revenue"})],
        [
            ("plot_bar", {"table": "t1", "x": "month", "y": "revenue"}),
            ("best_rows", {"table": "t1", "column": "revenue", "count": 3}),
        ],
        "March was best.",
    ),
    deps_type=Objects,
)


@agent.tool
def group_sum(ctx: RunContext[Objects], table: str, by: str, column: str) -> str:
    """Sum a column for each group of a table; return the new table's name."""
    kept = ctx.deps.kept
    name = f"t{len(kept)}"
    kept[name] = (
        kept[table].group_by(by, maintain_order=True).agg(polars.col(column).sum())
    )
    return name


@agent.tool
def plot_bar(ctx: RunContext[Objects], table: str, x: str, y: str) -> str:
    """Draw bars of a table; return the file."""
    frame = ctx.deps.kept[table]
    figure, axes = pyplot.subplots()
    axes.bar(frame[x].to_list(), frame[y].to_list())
    Path("report").mkdir(exist_ok=True)
    figure.savefig("report/revenue.png")
    ctx.deps.files.append("revenue.png")
    return "revenue.png"


@agent.tool
def best_rows(ctx: RunContext[Objects], table: str, column: str, count: int) -> list:
    """Return the rows with the largest values."""
    best = ctx.deps.kept[table].sort(column, descending=True).head(count)
    ctx.deps.rows = best.to_dicts()
    return ctx.deps.rows


orders = polars.read_csv(Path(__file__).parent.with_name("orders.csv"))
objects = Objects({"orders": orders})
answer = agent.run_sync(
    "Monthly revenue of the table orders as bars; the three best?", deps=objects
)
print([row["revenue"] for row in objects.rows])
print(answer.output, *objects.files)
