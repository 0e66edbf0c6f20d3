"""Agents that talk while they work: a chat model that streams its words, and custom chunks.

Gates: "word 0", "word 1", ... before each word; the names of the nodes as in `graphs`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy, Send

from celegraph import recorded_model
from tests.support.gates import gates_of_process
from tests.support.graphs import chain_of, enter
from tests.support.trail import Trail

WORDS = ("one ", "two ", "three ", "four ", "five ")


class Told(TypedDict, total=False):
    """`cents` is the input of every test agent."""

    cents: int
    said: str
    parts: Annotated[list[str], operator.add]


class Talker(BaseChatModel):
    """Says the same words every time; a gate before each of them."""

    run_id: str
    words: tuple[str, ...] = WORDS

    @property
    def _llm_type(self) -> str:
        return "talker"

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for number, word in enumerate(self.words):
            gates_of_process().pass_through(f"word {number}", self.run_id)
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        for number, _ in enumerate(self.words):
            gates_of_process().pass_through(f"word {number}", self.run_id)
        message = AIMessage(content="".join(self.words), response_metadata={"whole": True})
        return ChatResult(generations=[ChatGeneration(message=message)])


def _run_id(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


def _prepare(state: Told, config: RunnableConfig) -> Told:
    enter("one", _run_id(config))
    get_stream_writer()({"found": "order 7"})
    return {}


def _speak(state: Told, config: RunnableConfig) -> Told:
    enter("speak", _run_id(config))
    answer = Talker(run_id=_run_id(config)).invoke("talk")
    gates_of_process().pass_through("spoken", _run_id(config))
    return {"said": str(answer.content)}


def _last(state: Told, config: RunnableConfig) -> Told:
    enter("last", _run_id(config))
    return {}


telling = chain_of(Told, ("one", _prepare), ("speak", _speak), ("last", _last))


# -- a fan-out, a subgraph, a node that is tried again in place, a recorded model, a flood ------------------


def _part(state: Any, config: RunnableConfig) -> Told:
    enter(f"part {state['part']}", _run_id(config))
    Talker(run_id=_run_id(config), words=(f"part {state['part']} ", "said ")).invoke("talk")
    gates_of_process().pass_through(f"part {state['part']} said", _run_id(config))
    return {"parts": [state["part"]]}


told_by_many = StateGraph(Told)
told_by_many.add_node("part", _part)
told_by_many.add_conditional_edges(
    START, lambda state: [Send("part", {"part": name}) for name in ("a", "b")], ["part"]
)

_inner = chain_of(Told, ("inner_one", _prepare), ("inner_speak", _speak))
told_within = chain_of(Told, ("outer", _inner.compile()), ("last", _last))


def _stumble(state: Told, config: RunnableConfig) -> Told:
    passes = [s for s in Trail.of_process().steps(_run_id(config)) if s == "stumble"]
    enter("stumble", _run_id(config))
    Talker(run_id=_run_id(config), words=("once ", "more ")).invoke("talk")
    if not passes:
        raise ConnectionError("stumbled")
    return {}


told_again = StateGraph(Told)
told_again.add_node("stumble", _stumble, retry_policy=RetryPolicy(initial_interval=0.01))
told_again.add_edge(START, "stumble")


def _speak_on_record(state: Told, config: RunnableConfig) -> Told:
    enter("speak", _run_id(config))
    answer = recorded_model(Talker(run_id=_run_id(config))).invoke("talk")
    gates_of_process().pass_through("spoken", _run_id(config))
    return {"said": str(answer.content)}


told_on_record = chain_of(Told, ("speak", _speak_on_record), ("last", _last))


def _ramble(state: Told, config: RunnableConfig) -> Told:
    enter("ramble", _run_id(config))
    write = get_stream_writer()
    for number in range(state["cents"]):
        write({"number": number, "padding": "x" * 1000})
    return {}


told_at_length = chain_of(Told, ("ramble", _ramble), ("last", _last))
