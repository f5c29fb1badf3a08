"""A question about data: the table and the chart never pass through the model."""

import sys
from pathlib import Path

from neuraxis import Session
from neuraxis.testing import ScriptedModel

PLAN = """[
{"tool": "group_rows", "table": "asset://a1/content", "by": ["month"], "as": "months",
 "aggregations": [{"column": "revenue", "function": "sum", "name": "revenue"}]},
{"tool": "plot_bar", "table": "{{ months }}", "x": "month", "y": "revenue", "as": "p"},
{"tool": "save_image", "img_data": "{{ p }}", "file_path": "revenue.png"},
{"tool": "sort_rows", "table": "{{ months }}", "columns": ["revenue"],
 "descending": true, "as": "best"},
{"tool": "table_rows", "table": "{{ best }}", "count": 3}]"""

session = Session(
    sys.argv[1] if sys.argv[1:] else ScriptedModel([PLAN, "March was best."]),
    plugins=["neuraxis:tables", "neuraxis:plots", "neuraxis:images"],
    workspace="report",
    journal="report.db",  # so that a second run may replace what the first one wrote
)
answer = session.run_sync(
    "Monthly revenue as bars in revenue.png; the three best?",
    attach=[Path(__file__).with_name("orders.csv")],
)
for result in answer.calls:
    if result.error:
        sys.exit(result.error.message)
print([row["revenue"] for row in answer.calls[-1].value["rows"]])
print(answer.text, *answer.files)
