"""LangChain's HumanInTheLoopMiddleware: several tool calls in one question, each answered for itself."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.tools import tool
from langgraph.types import interrupt

from celegraph import ApprovalPolicy, EffectCall, effect
from celegraph.agent.actions import review_of
from celegraph.agent.spec import Agent
from celegraph.errors import DecisionRefused
from celegraph.testing.driver import Driven, Driver
from tests.support.log import Log
from tests.support.shapes import State, chain

REFUND = ToolCall(name="refund", args={"order": "o-1", "cents": 50}, id="c1", type="tool_call")
MAIL = ToolCall(name="mail", args={"to": "ann@shop.example"}, id="c2", type="tool_call")
Mode = Literal["batched", "per_call"]


class Model(GenericFakeChatModel):
    """Says what it is told to say."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Model:
        return self


def agent(log: Log, *calls: ToolCall, mode: Mode = "batched", allowed: list[Any] | None = None) -> Any:
    @effect("hitl-refund", in_doubt="retry")
    def pay(call: EffectCall, order: str, cents: int) -> str:
        log(f"refund {order} {cents}")
        return "paid"

    @tool
    def refund(order: str, cents: int) -> str:
        """Refund an order."""
        return pay(order, cents)

    @tool
    def mail(to: str) -> str:
        """Write a mail."""
        log(f"mail {to}")
        return "sent"

    def says(_: object = None) -> Any:
        yield AIMessage("", tool_calls=list(calls))
        yield AIMessage("all done")
        yield AIMessage("all done")

    config: Any = True if allowed is None else {"allowed_decisions": allowed}
    return create_agent(
        Model(messages=says()),
        tools=[refund, mail],
        middleware=[HumanInTheLoopMiddleware({"refund": config, "mail": True}, interrupt_mode=mode)],
    )


def asking(drive: Driver, graph: Any, **how: Any) -> Driven:
    return drive(Agent(graph=graph, **how), {"messages": [{"role": "user", "content": "refund it"}]})


def replies(run: Driven) -> list[str]:
    """What the model got back from its tools."""
    found: list[str] = []
    for message in run.output["messages"]:
        kind = message["type"] if isinstance(message, dict) else message.type
        if kind == "tool":
            found.append(message["content"] if isinstance(message, dict) else message.content)
    return found


@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_a_question_names_its_tool_and_its_arguments(drive: Driver, log: Log, mode: Mode) -> None:
    run = asking(drive, agent(log, REFUND, mode=mode))

    (question,) = run.approvals
    review = review_of(question.args)
    assert review is not None
    assert question.tool == "refund"
    assert [(a.name, a.args) for a in review.actions] == [("refund", REFUND["args"])]
    assert "Tool: refund" in question.prompt
    assert question.asked["agent"] == "agent"


@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize(
    ("decision", "acts", "reply"),
    [
        ("approve", ["refund o-1 50"], "paid"),
        ({"verb": "reject", "note": "too much"}, [], "too much"),
        (("edit", {"cents": 20}), ["refund o-1 20"], "paid"),
        (("answer", "ask again tomorrow"), [], "ask again tomorrow"),
        (("answer", {"type": "reject", "message": "no"}), [], "no"),
    ],
)
def test_each_answer_does_what_it_says(
    drive: Driver, log: Log, mode: Mode, decision: Any, acts: list[str], reply: str
) -> None:
    run = asking(drive, agent(log, REFUND, mode=mode)).resume([decision])

    assert run.status == "finished", run.run.error
    assert log.lines == acts
    assert reply in replies(run)[0]


def test_several_calls_in_one_question_are_answered_one_by_one(drive: Driver, log: Log) -> None:
    run = asking(drive, agent(log, REFUND, MAIL))

    run.resume([("answer", [{"type": "edit", "args": {"cents": 20}}, "reject"])])

    assert log.lines == ["refund o-1 20"]
    assert run.approvals[0].status == "approved"


def test_all_calls_of_a_question_are_approved_or_rejected_together(drive: Driver, log: Log) -> None:
    assert asking(drive, agent(log, REFUND, MAIL)).resume(["reject"]).approvals[0].status == "rejected"
    assert log.lines == []

    asking(drive, agent(log, REFUND, MAIL)).resume(["approve"])
    assert sorted(log.lines) == ["mail ann@shop.example", "refund o-1 50"]


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (("answer", ["approve"]), "2 calls, and 1 decisions"),
        (("edit", {"cents": 1}), "edit one of them"),
        (("answer", ["approve", {"type": "edit", "args": {"tu": "x"}}]), "unknown argument 'tu'"),
        (("answer", ["approve", {"type": "edit"}]), "needs args"),
        (("answer", ["approve", {"type": "respond"}]), "needs a message"),
        (("answer", ["approve", {"type": "perhaps"}]), "one of approve, edit, reject, respond"),
        (
            ("answer", [{"type": "edit", "edited_action": {"name": "mail", "args": {}}}, "approve"]),
            "not the tool",
        ),
    ],
)
def test_an_answer_of_the_wrong_form_is_refused_before_anything_is_written(
    drive: Driver, log: Log, decision: Any, said: str
) -> None:
    run = asking(drive, agent(log, REFUND, MAIL))

    with pytest.raises(DecisionRefused, match=said):
        run.resume([decision])

    assert [a.status for a in run.approvals] == ["open"]


def test_what_the_author_does_not_allow_is_refused_with_what_is_allowed(drive: Driver, log: Log) -> None:
    run = asking(drive, agent(log, REFUND, allowed=["approve", "reject"]))

    with pytest.raises(DecisionRefused, match="does not allow 'edit' \\(it allows approve, reject\\)"):
        run.resume([("edit", {"cents": 1})])


def test_silence_is_told_to_the_model_as_silence(drive: Driver, log: Log) -> None:
    run = asking(drive, agent(log, REFUND), approval=ApprovalPolicy(deadline="1h")).resume(["expire"])

    assert run.status == "finished", run.run.error
    assert log.lines == []
    assert "nobody answered in time" in replies(run)[0]


@pytest.mark.parametrize(
    "configs",
    [
        5,
        [5],
        {"x": 1},
        [{"action_name": "x", "allowed_decisions": 5}],
        [{"action_name": "x", "allowed_decisions": [[], 5]}],
    ],
)
def test_a_question_of_an_odd_form_is_asked_all_the_same(drive: Driver, configs: Any) -> None:
    def ask(state: State) -> State:
        answer = interrupt({"action_requests": [{"name": "x", "args": {}}], "review_configs": configs})
        return {"seen": [answer["decisions"][0]["type"]]}

    run = drive(chain(ask), {}, ["approve"])

    assert run.output["seen"] == ["approve"]
