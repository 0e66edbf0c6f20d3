"""What can be wrong with a request, and the page that says so and what to do next.

One table: the error, its status, a title, and whether the error's own words are for the reader.
"""

from __future__ import annotations

from dataclasses import dataclass

from celegraph import errors
from celegraph.ledger.db_errors import is_lost


class PageProblem(Exception):
    """A request that gets an answer page instead of what it asked for."""

    status = 400
    title = "That did not work"

    def __init__(self, message: str):
        super().__init__(message)
        self.message = message


class BadRequest(PageProblem):
    """The request itself is malformed."""

    title = "This request cannot be read"


class NotFound(PageProblem):
    """There is no such thing, or this viewer may not know that there is."""

    status = 404

    def __init__(self, what: str):
        super().__init__(f"There is no such {what}, or it is of an agent that you may not see.")
        self.title = f"No such {what}"


class NotAllowed(PageProblem):
    """A viewer without the permission; nothing was changed."""

    status = 403
    title = "You may not do this"


class NobodySignedIn(PageProblem):
    """The host's authorisation named nobody."""

    status = 403
    title = "You are not signed in"

    def __init__(self) -> None:
        super().__init__("These pages are for people who are signed in and may see agents' runs.")


class TooLate(PageProblem):
    """Somebody, or the deadline, was first; nothing was changed."""

    status = 409
    title = "Too late"


class Unfit(PageProblem):
    """A form whose content does not fit; nothing was changed."""

    status = 422
    title = "Nothing was changed"


class TooLarge(PageProblem):
    """A form beyond the host's limit."""

    status = 413
    title = "This form is too large"

    def __init__(self) -> None:
        super().__init__(
            "The server does not take forms of this size. Nothing was changed; shorten the text."
        )


class Forged(PageProblem):
    """A form that did not come from our page, or from one that was open too long."""

    status = 403
    title = "This form has expired"

    def __init__(self) -> None:
        super().__init__(
            "The form does not carry the mark of your session: the page was open for too long, you signed in"
            " anew, or your browser blocks cookies. Nothing was changed; reload the page and try again."
        )


@dataclass(frozen=True)
class Problem:
    """What the answer page says."""

    status: int
    title: str
    message: str


def problem_of(error: BaseException) -> Problem | None:
    """The answer to an error that a request may cause; None for one that is the host's own to report."""
    match error:
        case PageProblem():
            return Problem(error.status, error.title, error.message)
        # To the letter what `access.must_see` says: nobody shall learn which ids exist.
        case errors.RunNotFound():
            return problem_of(NotFound("run"))
        case errors.ApprovalNotFound():
            return problem_of(NotFound("question"))
        case errors.EffectNotFound():
            return problem_of(NotFound("effect"))
        case errors.RunMoved():
            now = f"It is {error.status} now." if error.status else "It has moved on."
            return Problem(409, "Nothing was changed", f"The run cannot {error.verb} any more. {now}")
        case errors.NotResolvable():
            return Problem(409, "Nothing was changed", _sentence(str(error)))
        case errors.DecisionRefused():
            return Problem(422, "Nothing was changed", _sentence(error.problem))
        case errors.InvalidValue():
            return Problem(422, "Nothing was changed", _sentence(f"{error.path} {error.problem}"))
        case errors.LinkExpired():
            return Problem(
                410,
                "This link has expired",
                "Its time is over, so it opens nothing any more. Ask for a new one, or decide in the inbox.",
            )
        case errors.LinkForged():
            return Problem(
                404,
                "This link is not valid",
                "It was cut or changed on its way. Open it from the message again.",
            )
        case errors.ReadTooSlow():
            return Problem(
                503, "That search takes too long", "Narrow it down, for example to one agent or status."
            )
        case errors.ConfigError():
            return Problem(503, "celegraph is not ready here", str(error))
    if is_lost(error):
        return Problem(
            503,
            "The database does not answer",
            "Nothing was changed. Wait a moment and load this page again.",
        )
    return None


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
