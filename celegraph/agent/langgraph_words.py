"""LangGraph's own words that it writes into checkpoints and paths but does not export.

Here and in `ledger/sql` (which names the same rows) and nowhere else; `tests/contracts` holds them to the
installed version.
"""

from __future__ import annotations

# Channels: pending Sends, edges to a node, a failed task's error, and the failed node's name for the
# graph's own error handler.
TASKS = "__pregel_tasks"
BRANCH_TO = "branch:to:"
JOIN = "join:"
ERROR = "__error__"
ERROR_SOURCE_NODE = "__error_source_node__"
# What a task that finished without writing anything leaves behind.
NO_WRITES = "__no_writes__"

# How a task came to be, as the first part of its path: by an edge, or by a Send or a call of a @task.
PULL = "__pregel_pull"
PUSH = "__pregel_push"
# What all such parts begin with.
PREGEL = "__pregel_"

# The task of writes that belong to no task.
NULL_TASK_ID = "00000000-0000-0000-0000-000000000000"

# Channels of a task's answers and of a @task's result, of a graph's input, and of a state that is one value.
RESUME = "__resume__"
RETURN = "__return__"
START = "__start__"
ROOT = "__root__"
# What an @entrypoint returns, for its caller and for its next run.
END = "__end__"
PREVIOUS = "__previous__"

# The node under whose name an @entrypoint's input is stored, and the key of questions in streamed values.
INPUT = "__input__"
INTERRUPT = "__interrupt__"


def node_of_path(text: str) -> str | None:
    """The node a stored path belongs to, when it came to be by an edge; else None."""
    prefix = f"~{PULL}, "
    return text.removeprefix(prefix) if text.startswith(prefix) else None


def path_text(path: object) -> str:
    """A task's path as it is stored beside the task's writes."""
    if isinstance(path, tuple):
        return f"~{', '.join(path_text(part) for part in path)}"
    return f"{path:010d}" if isinstance(path, int) else str(path)
