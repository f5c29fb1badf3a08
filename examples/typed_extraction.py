"""A typed answer: mistakes are reported to the model, which corrects them."""

import datetime
import sys

from pydantic import BaseModel, Field

from neuraxis import Session
from neuraxis.testing import ScriptedModel

WRONG = '{"number": "R7", "total": -12.5, "due": "2026-01-31"}'
RIGHT = '{"number": "R7", "total": 12.5, "due": "2026-01-31"}'


class Invoice(BaseModel):
    number: str
    total: float = Field(gt=0)
    due: datetime.date


session = Session(
    sys.argv[1] if sys.argv[1:] else ScriptedModel([WRONG, RIGHT]),
    instructions="You read invoices. Amounts are in euros.",
    output=Invoice,
)
answer = session.run_sync("Invoice R7, 12.50 euros, due on January 31, 2026")
print(repr(answer.output))
print("mended:", len(answer.problems))
