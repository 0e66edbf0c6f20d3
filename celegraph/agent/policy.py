"""What a question's author says about time and people: who is told, who is asked next, what silence means.

A policy is data.  It is checked here, kept in the question's row, and acted on by the database's clock;
nothing of it lives in a process.  Light on purpose: web processes read this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_serializer,
    model_validator,
)

from celegraph.config import Config, parse_duration
from celegraph.errors import ConfigError
from celegraph.ledger.values import MAX_SPAN

OnTimeout = Literal["reject", "cancel", "approve", "read_only", "escalate"]
# A question that has been brought up so often is not answered by bringing it up once more.
MOST_STEPS = 20
_SHORTEST_PAUSE = timedelta(seconds=1)


def span(value: object) -> timedelta:
    """A duration of at most a hundred years."""
    found = parse_duration(value)
    if found > MAX_SPAN:
        raise ValueError(f"{value!r} is more than a hundred years")
    return found


def _ahead(found: timedelta) -> timedelta:
    """Over before it is asked, a question would be answered by silence alone."""
    if found <= timedelta(0):
        raise ValueError(f"a deadline of {found.total_seconds():g} s leaves nobody time to answer")
    return found


def _deadline(value: object) -> object:
    """A span from the asking, or an instant.  A naive datetime names no instant."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        # Only an instant has a date in it.
        if not (isinstance(value, str) and value[:4].isdigit() and "-" in value):
            return _ahead(span(value))
        value = datetime.fromisoformat(value)
    if value.utcoffset() is None:
        raise ValueError(
            f"{value.isoformat()} has no time zone and names no instant; write"
            ' datetime(..., tzinfo=ZoneInfo("Europe/Berlin"))'
        )
    try:
        too_far = value.astimezone(UTC) - datetime.now(UTC) > MAX_SPAN
    except OverflowError:
        too_far = True
    if too_far:
        raise ValueError(f"{value.isoformat()} is more than a hundred years away")
    return value


Span = Annotated[timedelta, BeforeValidator(span), Field(ge=timedelta(0))]
Pause = Annotated[timedelta, BeforeValidator(span), Field(ge=_SHORTEST_PAUSE)]
Deadline = Annotated[timedelta | datetime | None, BeforeValidator(_deadline)]
# They become a mail's recipient, part of an address or a line of a log.
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f\u2028\u2029]+$")]


class Step(BaseModel):
    """Tell `to`, through the channel `by`, `after` the question was asked: Step("1h", to="duty-manager").

    `to` is a person or a role of yours; the channel knows the address.  A decision through the link that
    they get is recorded as theirs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    after: Span = timedelta(0)
    to: Name
    by: Name = "email"

    if TYPE_CHECKING:

        def __init__(self, after: timedelta | str | float = ..., *, to: str, by: str = ...) -> None: ...

    else:

        def __init__(self, *after: Any, **given: Any) -> None:
            # The time reads best without its name; validation must see every other name that was given.
            super().__init__(**dict(zip(("after",), after, strict=bool(after))), **given)

    @field_serializer("after")
    def _seconds(self, value: timedelta) -> float:
        return value.total_seconds()


class ApprovalPolicy(BaseModel):
    """How long a question stays open, who hears of it, and what silence means.

    `deadline`: a span from the asking, or an aware datetime.  `notify`: who is told at once; None takes the
    agent's, then the app's.  `remind`: when all who were told are told again.  `escalate`: who is asked
    next, and when.

    `on_timeout`, at the deadline: "reject" goes on in the graph with a decision that is not approved,
    "cancel" ends the run, "read_only" goes on as "reject" does and disables the run's effects, "approve"
    goes on with a yes that is nobody's, "escalate" leaves the question open and asks the chain's last step
    again, now and every `ask_again`.  An expiry is never recorded as a person's answer.

    Questions of the ledger itself (about a doubt, a drift, a call without its approval) have no safe answer
    that nobody has given: at their deadline they behave as under "escalate".
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    deadline: Deadline = None
    remind: tuple[Pause, ...] = Field((), max_length=MOST_STEPS)
    escalate: tuple[Step, ...] = Field((), max_length=MOST_STEPS)
    notify: tuple[Step, ...] | None = Field(None, max_length=MOST_STEPS)
    on_timeout: OnTimeout = "reject"
    ask_again: Annotated[timedelta, BeforeValidator(span), Field(ge=_SHORTEST_PAUSE)] = timedelta(days=1)

    if TYPE_CHECKING:
        # What validation accepts; the attributes are timedeltas.
        def __init__(
            self,
            *,
            deadline: timedelta | datetime | str | float | None = None,
            remind: Sequence[timedelta | str | float] = (),
            escalate: Sequence[Step] = (),
            notify: Sequence[Step] | None = None,
            on_timeout: OnTimeout = "reject",
            ask_again: timedelta | str | float = ...,
        ) -> None: ...

    @field_serializer("deadline")
    def _deadline_as_text(self, value: timedelta | datetime | None) -> float | str | None:
        if isinstance(value, datetime):
            return value.isoformat()
        return None if value is None else value.total_seconds()

    @field_serializer("remind", "ask_again")
    def _seconds(self, value: tuple[timedelta, ...] | timedelta) -> list[float] | float:
        if isinstance(value, timedelta):
            return value.total_seconds()
        return [span.total_seconds() for span in value]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.deadline is None and self.on_timeout != "reject":
            raise ValueError(f"on_timeout={self.on_timeout!r} needs a deadline: without one it never comes")
        if self.on_timeout == "escalate" and not self.escalate:
            raise ValueError("on_timeout='escalate' needs escalate=[Step(...)]: whom shall it ask?")
        if any(step.after for step in self.notify or ()):
            raise ValueError("notify is told at once; a Step with a time belongs into escalate")
        if not all(step.after for step in self.escalate):
            raise ValueError("escalate needs a time, as in Step('1h', to=...); who is told at once is notify")
        late = [s for s in (*self.remind, *(e.after for e in self.escalate)) if self._is_late(s)]
        if late:
            raise ValueError(f"{late[0]} is not before the deadline of {self.deadline}")
        return self

    def _is_late(self, after: timedelta) -> bool:
        # An instant cannot be compared with spans before the question is asked; a step behind it is
        # simply never reached.
        return isinstance(self.deadline, timedelta) and after >= self.deadline

    @property
    def channels(self) -> frozenset[str]:
        """The channels it names."""
        return frozenset(step.by for step in (*self.escalate, *(self.notify or ())))

    def as_row(self, defaults: ApprovalPolicy | None = None) -> dict[str, Any]:
        """What the question's row keeps: the policy, with its steps in the order of their times.

        `defaults` are the agent's: who is told where this policy does not say.
        """
        notify = self.notify if self.notify is not None or defaults is None else defaults.notify
        reminders = [(s, {"after": s.total_seconds(), "what": "reminder"}) for s in self.remind]
        steps = [(s.after, s.model_dump(mode="json") | {"what": "escalation"}) for s in self.escalate]
        # At the same instant the next person is asked before everybody is reminded.
        stages = [stage for _, stage in sorted([*steps, *reminders], key=lambda pair: pair[0])]
        row = self.model_dump(mode="json")
        return row | {"notify": [s.model_dump(mode="json") for s in notify or ()], "stages": stages}


def check_channels(policy: ApprovalPolicy, config: Config) -> ApprovalPolicy:
    """The policy, or `ConfigError`: a step names a channel that nobody has configured."""
    for name in sorted(policy.channels - config.channels.keys()):
        known = ", ".join(sorted(config.channels)) or "none"
        raise ConfigError(
            f"an approval policy tells people by {name!r}, and there is no such channel (configured:"
            f" {known}); add it to option 'channels'"
        )
    return policy


def approval_policy(values: Mapping[str, Any]) -> ApprovalPolicy:
    """A policy from configuration; ConfigError says which key is wrong."""
    try:
        return ApprovalPolicy.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in ("approval", *first["loc"]))
        raise ConfigError(f"celegraph: option {where!r}: {first['msg']}") from error


# An agent's policy by its name; the app's for one that is not installed any more.
PolicyOf = Callable[[str | None], ApprovalPolicy]
