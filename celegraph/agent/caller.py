"""Who calls: the attempt, the logical step, and whether calls there come in the author's order."""

from __future__ import annotations

from dataclasses import dataclass

from celegraph.agent.advice import in_router
from celegraph.agent.attempt import Attempt, current_attempt
from celegraph.agent.graphs import Graph, retries_in_place
from celegraph.agent.home import at_home
from celegraph.agent.place import Place, here
from celegraph.agent.tool_calls import current_tool_call
from celegraph.errors import EffectMisuse


@dataclass(frozen=True)
class Caller:
    """Worked out in the caller's own thread and context, before any hop to the loop."""

    attempt: Attempt
    place: Place
    slot: str | None
    tool_call: str | None
    ordered: bool
    in_router: bool = False

    @property
    def step(self) -> str:
        """The logical step; each tool call of a model is a step of its own within its node."""
        return self.place.step if self.tool_call is None else f"{self.place.step}!{self.tool_call}"


def arrive(what: str, slot: str | None) -> Caller:
    """The caller of `what`; EffectOutsideRun or EffectMisuse when it is not inside a node of a run."""
    attempt = current_attempt(what)
    place = here(attempt.saver.sites.site)
    if place is None:
        raise EffectMisuse(f"{what} must be called inside a node of the run's graph")
    if place.caller is not None and attempt.graph is not None:
        _refuse_retries_around(attempt.graph, what, place.caller)
    tool_call = current_tool_call()
    ordered = tool_call is not None or at_home(place.execution)
    return Caller(attempt, place, slot, tool_call, ordered, in_router(attempt))


def _refuse_retries_around(graph: Graph, what: str, caller: str) -> None:
    # LangGraph numbers a node's @task calls on across the attempts of its RetryPolicy and tells the task
    # nothing of them: the second attempt's effects would be other effects.
    if retries_in_place(graph, caller):
        raise EffectMisuse(
            f"{what} is in a @task called from node {caller!r}, which has a RetryPolicy;"
            " put the policy on the @task, or let the run retry the node: Agent(retry=...)"
        )
