"""The drafter answers from the documentation, and says whether a model took part."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from examples.support import draft
from examples.support.draft import ModelUnavailable, draft_answer, load_model
from examples.support.search import Passage
from examples.support.tickets import Ticket

TICKET = Ticket("T-1", "ana@shop.example", "Refunded twice?", "Can a refund be performed twice?")
PASSAGE = Passage(
    page="docs/guarantees.md",
    title="Once",
    body=(
        "First things first. Weather is fine. A `refund` is never **performed** twice. Birds sing."
        "\n\n| Once | then |\n|---|---|\n| a refund is [recorded](x.md) | it stands |\n"
    ),
    headline="",
    rank=0.1,
)


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CELEGRAPH_MODEL", raising=False)


def test_without_a_model_the_answer_quotes_the_documentation_and_says_so() -> None:
    answer = draft_answer(TICKET, [PASSAGE])

    assert answer.drafted_by == "documentation"
    assert "Once (docs/guarantees.md):\n" in answer.body
    assert "A refund is never performed twice." in answer.body
    assert "drafted without a language model from the project's documentation" in answer.body


def test_with_nothing_found_the_answer_admits_it() -> None:
    answer = draft_answer(TICKET, [])

    assert "We found nothing about it in our documentation." in answer.body
    assert draft.WITHOUT_MODEL in answer.body


def test_the_same_ticket_is_always_drafted_the_same_way() -> None:
    assert draft_answer(TICKET, [PASSAGE]) == draft_answer(TICKET, [PASSAGE])


def test_sentences_that_fit_the_question_are_chosen_and_keep_their_order() -> None:
    text = "Rain falls. Refunds come once. Snow falls. Twice is refused. Performed means recorded."

    chosen = draft.best_sentences(TICKET.question, text)

    assert chosen == "Refunds come once. Twice is refused. Performed means recorded."


def test_markdown_becomes_running_text() -> None:
    page = "a **b** `c` [d](e.md)\n\n| f | g |\n|--|--|\n- h:\n\n    run i\n\n```\ncode\n```\nj"

    assert draft.plain(page) == "a b c d f: g. h: run i; j"


class Model:
    """Stands for a chat model; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def invoke(self, messages: list[tuple[str, str]]) -> SimpleNamespace:
        self.asked = messages
        return SimpleNamespace(text="  Only once.\n")


def install_langchain(monkeypatch: pytest.MonkeyPatch, init: object) -> None:
    module = ModuleType("langchain.chat_models")
    module.__dict__["init_chat_model"] = init
    monkeypatch.setitem(sys.modules, "langchain", ModuleType("langchain"))
    monkeypatch.setitem(sys.modules, "langchain.chat_models", module)


def test_a_configured_model_is_given_passages_and_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    models = {"fake:wise": Model()}
    install_langchain(monkeypatch, models.__getitem__)
    monkeypatch.setenv("CELEGRAPH_MODEL", "fake:wise")

    answer = draft_answer(TICKET, [PASSAGE])

    assert (answer.body, answer.drafted_by) == ("Only once.", "fake:wise")
    (_, question) = models["fake:wise"].asked[1]
    assert PASSAGE.body in question
    assert TICKET.question in question


@pytest.mark.parametrize("model", ["gpt", "openai:", ":gpt"])
def test_a_model_without_provider_or_name_is_refused(model: str) -> None:
    with pytest.raises(ModelUnavailable, match="write provider:name"):
        load_model(model)


def test_missing_langchain_is_an_error_that_names_the_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "langchain", None)
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)

    with pytest.raises(ModelUnavailable, match="pip install langchain langchain-openai"):
        load_model("openai:gpt-5")


def test_a_missing_provider_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(model: str) -> object:
        raise ImportError("requires langchain-google-genai")

    install_langchain(monkeypatch, init)

    with pytest.raises(ModelUnavailable, match="pip install langchain langchain-google-genai"):
        load_model("google_genai:gemini-3")


def test_an_unknown_provider_is_refused_in_langchains_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def init(model: str) -> object:
        raise ValueError("Unsupported provider='nope'")

    install_langchain(monkeypatch, init)

    with pytest.raises(ModelUnavailable, match=r"nope:x.*Unsupported provider"):
        load_model("nope:x")
