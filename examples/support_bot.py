"""A support bot: a refund waits for a person's yes, also across processes."""

import sys
from dataclasses import dataclass

from neuraxis import Context, Options, Session, command
from neuraxis.testing import ScriptedModel

REFUND = (
    '[{"tool": "order", "number": 7}, {"tool": "refund", "number": 7, "amount": 20}]'
)


@dataclass
class Shop:
    orders: dict[int, str]
    clerk: str


@command(effects="read")
def order(number: int, context: Context[Shop]) -> str:
    """State of an order."""
    return context.deps.orders[number]


@command(effects={"kind": "once", "needs_approval": True})
def refund(number: int, amount: float, context: Context[Shop]) -> str:
    """Pay money back."""
    return f"{context.deps.clerk} refunded {amount} of order {number}"


shop = Shop({7: "broken"}, "Ada")
model = sys.argv[1:] or ScriptedModel([REFUND, "You have 12.50 back."])


def ticket(id: str) -> Session:
    return Session(
        model,
        id=id,
        plugins=[order, refund],
        deps=Shop,
        instructions="Refund what came broken.",
        journal="shop.db",
        approve="later",
        options=Options(reopen=True),
    )


with ticket("ticket-1") as session:
    answer = session.run_sync("Order 7 came broken, I want 20 back", deps=shop)
    print(answer.outcome, [question.summary for question in session.pending()])

# hours later, in another process
with ticket("ticket-1") as session:
    for question in session.pending():
        session.approve(question.id, amount=12.5)  # as changed, checked again
    answer = session.resume_sync(deps=shop)
    print(answer.calls[-1].value)
    print(answer.text)
