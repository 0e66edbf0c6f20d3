"""The support agent: read the ticket, search the documentation, draft, ask the manager, send.

A plain LangGraph graph.  What makes it durable is that its one act is an `@effect` (mail.py) and
its one question an `ask_approval`; everything else may run again after a crash without harm.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph

from celegraph import ApprovalPolicy, ask_approval
from examples.support.draft import draft_answer
from examples.support.mail import send_mail
from examples.support.search import Passage, search
from examples.support.tickets import Ticket, read_ticket

POLICY = ApprovalPolicy(deadline="2h", on_timeout="reject")

# The functional form, because "from" cannot be written as an attribute.
TicketInput = TypedDict(
    "TicketInput", {"ticket_id": str, "from": str, "subject": str, "body": str}, total=False
)


class SupportState(TicketInput, total=False):
    """What the nodes tell each other; plain JSON, so that a person can read a checkpoint."""

    ticket: dict[str, str]
    passages: list[dict[str, Any]]
    draft: dict[str, str]
    decision: dict[str, Any]
    outcome: str
    message_id: str


def read(state: SupportState) -> SupportState:
    """Refuse at once what could never be answered."""
    return {"ticket": asdict(read_ticket(state))}


def look_up(state: SupportState) -> SupportState:
    """Find what the documentation says."""
    found = search(os.environ["CELEGRAPH_DATABASE_URL"], _ticket(state).question)
    return {"passages": [asdict(passage) for passage in found]}


def draft(state: SupportState) -> SupportState:
    """Write the answer.  Its own step: a model is never paid twice for one that is in the state."""
    passages = [Passage(**passage) for passage in state["passages"]]
    return {"draft": asdict(draft_answer(_ticket(state), passages))}


def ask(state: SupportState) -> SupportState:
    """Ask the manager, who may also edit the mail; the run waits without a worker."""
    ticket = _ticket(state)
    subject = f"Re: {ticket.subject or ticket.ticket_id}"
    decision = ask_approval(
        send_mail.bind(ticket.sender, subject, state["draft"]["body"]),
        prompt=f"Send this answer to ticket {ticket.ticket_id} to {ticket.sender}?",
        policy=POLICY,
    )
    return {
        "decision": {
            "approved": decision.approved,
            "status": decision.status,
            "by": decision.by,
            "note": decision.note,
            "args": decision.args,
        }
    }


def was_approved(state: SupportState) -> Literal["send", "close"]:
    return "send" if state["decision"]["approved"] else "close"


def send(state: SupportState) -> SupportState:
    """Send exactly what was approved.  The effect comes last, so nothing after it can fail."""
    return {"message_id": send_mail(**state["decision"]["args"]), "outcome": "sent"}


def close(state: SupportState) -> SupportState:
    """Nobody approved: `rejected` by a person, or `expired` by the deadline."""
    return {"outcome": state["decision"]["status"]}


def _ticket(state: SupportState) -> Ticket:
    return Ticket(**state["ticket"])


def build() -> StateGraph[SupportState, None, TicketInput, SupportState]:
    """The graph, uncompiled: celegraph compiles it with its own checkpointer."""
    builder = StateGraph(SupportState, input_schema=TicketInput, output_schema=SupportState)
    builder.add_node("read", read)
    builder.add_node("search", look_up)
    builder.add_node("draft", draft)
    builder.add_node("ask", ask)
    builder.add_node("send", send)
    builder.add_node("close", close)
    builder.add_edge(START, "read")
    builder.add_edge("read", "search")
    builder.add_edge("search", "draft")
    builder.add_edge("draft", "ask")
    builder.add_conditional_edges("ask", was_approved)
    builder.add_edge("send", END)
    builder.add_edge("close", END)
    return builder


graph = build()
