"""`recorded_model(model)`: a chat model whose answers are journalled; no token is paid twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding
from langchain_core.tools import BaseTool

from celegraph.agent.recorded import recorded


class RecordedChatModel(BaseChatModel):
    """Delegates to `model`; each answer is stored in the run before it is used.  Works in create_agent."""

    model: BaseChatModel

    @property
    def _llm_type(self) -> str:
        return f"recorded-{self.model._llm_type}"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        def ask(messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]) -> AIMessage:
            return _message(self.model.invoke(messages, stop=stop, **kwargs))

        return _result(recorded(ask, name=self._llm_type)(messages, stop, kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        async def ask(
            messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
        ) -> AIMessage:
            return _message(await self.model.ainvoke(messages, stop=stop, **kwargs))

        return _result(await recorded(ask, name=self._llm_type)(messages, stop, kwargs))

    def bind_tools(
        self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool], **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """As the model's own, with this wrapper in its place."""
        bound = self.model.bind_tools(tools, **kwargs)
        if isinstance(bound, RunnableBinding):
            return self.bind(**bound.kwargs)
        return RecordedChatModel(model=bound) if isinstance(bound, BaseChatModel) else bound


def recorded_model(model: BaseChatModel) -> RecordedChatModel:
    """`model`, with every answer journalled: a re-run gets the stored answer and pays no token."""
    return RecordedChatModel(model=model)


def _message(answer: object) -> AIMessage:
    if not isinstance(answer, AIMessage):
        raise TypeError(f"the chat model returned {type(answer).__name__} instead of an AIMessage")
    return answer


def _result(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])
