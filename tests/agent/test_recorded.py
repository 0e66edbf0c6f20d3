"""recorded(): an expensive read is made once per place of the run."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from celegraph import recorded, recorded_model
from celegraph.testing.driver import Driver
from tests.support.driving import event, kinds
from tests.support.log import Log
from tests.support.shapes import State, chain


def test_a_re_run_gets_the_stored_read_even_when_it_asks_differently(drive: Driver, log: Log) -> None:
    @recorded
    def search(words: str) -> dict[str, Any]:
        log(f"search {words}")
        return {"found": [words, ("a", 1.0)]}

    def node(state: State) -> State:
        log("node")
        first, second = search(f"pass {log.count('node')}"), search("second")
        if log.count("node") == 1:
            raise ConnectionResetError("after the reads")
        return {"seen": [first, second]}

    run = drive(chain(node), {})

    assert [line for line in log.lines if "search" in line] == ["search pass 1", "search second"]
    assert run.output["seen"] == [{"found": ["pass 1", ["a", 1.0]]}, {"found": ["second", ["a", 1.0]]}]
    assert kinds(run).count("read given back") == 2


def test_an_async_read_is_recorded_in_an_async_node(drive: Driver, log: Log) -> None:
    @recorded(name="stable name")
    async def fetch(n: int) -> int:
        log("fetch")
        return n * 2

    async def node(state: State) -> State:
        log("node")
        got = await fetch(4)
        if log.count("node") == 1:
            raise ConnectionResetError("after the read")
        return {"seen": [got]}

    run = drive(chain(node), {})

    assert run.output["seen"] == [8]
    assert log.count("fetch") == 1


def test_both_passes_get_equal_messages_of_their_own_class(drive: Driver, log: Log) -> None:
    @recorded
    def ask() -> AIMessage:
        return AIMessage("yes", id="m1")

    def node(state: State) -> State:
        log("node")
        log(repr(ask()))
        if log.count("node") == 1:
            raise ConnectionResetError("after the read")
        return {}

    drive(chain(node), {})

    first, second = (line for line in log.lines if line.startswith("AIMessage"))
    assert first == second


class _Model(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=tools)


def test_after_a_crash_inside_create_agent_no_token_is_paid_twice_and_what_was_saved_is_counted(
    drive: Driver, log: Log
) -> None:
    usage: Any = {"input_tokens": 40, "output_tokens": 2, "total_tokens": 42}
    asked: Any = {"name": "note", "args": {"text": "x"}, "id": "c1", "type": "tool_call"}
    # Two answers are all the model has: a third question would raise StopIteration.
    answers = iter([AIMessage("", tool_calls=[asked], usage_metadata=usage), AIMessage("done")])
    model = recorded_model(_Model(messages=answers))

    @tool
    def note(text: str) -> str:
        """Write a note."""
        return text

    agent = create_agent(model, [note])

    async def node(state: State) -> State:
        log("node")
        # The whole agent inside one node: a re-run of the node asks the model everything again.
        result = await agent.ainvoke({"messages": [{"role": "user", "content": "hi"}]})
        if log.count("node") == 1:
            raise ConnectionResetError("after the agent")
        return {"seen": [result["messages"][-1].content]}

    run = drive(chain(node), {})

    assert run.output["seen"] == ["done"], run.run.error
    assert log.count("node") == 2


def test_the_tokens_of_a_given_back_answer_are_in_the_trace(drive: Driver, log: Log) -> None:
    usage: Any = {"input_tokens": 40, "output_tokens": 2, "total_tokens": 42}
    model = recorded_model(_Model(messages=iter([AIMessage("done", usage_metadata=usage)])))

    async def node(state: State) -> State:
        log("node")
        answer = await model.ainvoke("hi")
        if log.count("node") == 1:
            raise ConnectionResetError("after the answer")
        return {"seen": [answer.content]}

    run = drive(chain(node), {})

    assert run.output["seen"] == ["done"]
    assert event(run, "read given back")["tokens"] == 42
