"""Who may do what: Django's permissions, for all agents or for one.  Nobody may until somebody says so.

| action | permission | what it opens |
|---|---|---|
| view | celegraph.view_run | runs with their events, effects and questions |
| decide | celegraph.decide_approval | answering a question |
| operate | celegraph.operate_run | cancel, pause, retry, release; resolving effects |

A permission that a user has counts for every agent.  For one agent alone the authentication backends are
asked with the agent's name as the object, `user.has_perm("celegraph.decide_approval", "refund")`, which
django-rules and backends of one's own answer.  Or `CELERY_CELEGRAPH["may"]` names a function
`may(user, action, agent) -> bool` that decides alone; `agent` is None when it is about all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from celegraph.contrib.django.settings import options
from celegraph.errors import NotInstalled
from celegraph.tasks.installation import installation

Action = Literal["view", "decide", "operate"]
Rule = Callable[[Any, str, str | None], bool]

PERMISSIONS: Final[dict[str, str]] = {
    "view": "celegraph.view_run",
    "decide": "celegraph.decide_approval",
    "operate": "celegraph.operate_run",
}


def may(user: Any, action: Action, agent: str | None = None) -> bool:
    """Whether this user may do it for this agent; without one, for every agent there is or will be."""
    # Asked here too: a rule of the host's, and some backends, look only at their own facts.
    if not (getattr(user, "is_authenticated", False) and getattr(user, "is_active", False)):
        return False
    return bool(rule()(user, action, agent))


def agents_for(user: Any, action: Action) -> Sequence[str] | None:
    """The agents for which the user may do it; None: all, also those that are not installed here."""
    if may(user, action):
        return None
    try:
        names = list(installation().agents)
    except NotInstalled:
        names = []
    return [name for name in names if may(user, action, name)]


def rule() -> Rule:
    """The host's own, else Django's permissions."""
    name = options().get("may")
    if name is None:
        return _by_permission
    try:
        found = import_string(str(name))
    except ImportError as error:
        raise ImproperlyConfigured(f"CELERY_CELEGRAPH['may'] cannot be imported: {error}") from error
    if not callable(found):
        raise ImproperlyConfigured(f"CELERY_CELEGRAPH['may'] is {name!r}, which is not callable")
    return found  # type: ignore[no-any-return]


def _by_permission(user: Any, action: str, agent: str | None) -> bool:
    permission = PERMISSIONS[action]
    return user.has_perm(permission) or (agent is not None and user.has_perm(permission, agent))
