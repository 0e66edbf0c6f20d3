"""Which tool call of the model is being served: a name for an effect's slot that survives re-runs."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler

_tool_call: ContextVar[str | None] = ContextVar("celegraph_tool_call", default=None)


class ToolCallNames(BaseCallbackHandler):
    """Hears from LangChain which tool call starts, in the very context the tool will run in."""

    run_inline = True

    def on_tool_start(self, serialized: dict[str, Any], input_str: str, **kwargs: Any) -> None:
        """The context variable stays set for the tool; the next tool call sets its own."""
        _tool_call.set(kwargs.get("tool_call_id"))

    def on_tool_end(self, output: Any, **kwargs: Any) -> None:
        """Code after the tool, in the same context, is no longer serving it."""
        _tool_call.set(None)

    def on_tool_error(self, error: BaseException, **kwargs: Any) -> None:
        """As `on_tool_end`."""
        _tool_call.set(None)


def current_tool_call() -> str | None:
    """The id of the model's tool call this code serves, if any."""
    return _tool_call.get()
