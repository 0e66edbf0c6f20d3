"""Tells people what is in the outbox for them: the outbox's own claims, back-off and answers to doubt.

The clock only enqueues; what is slow is here, in one thread for each channel, beside the worker's tasks:
a mail server that does not answer holds up neither deadlines nor another channel nor a run's slot.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from functools import lru_cache, partial
from typing import Any

from celegraph.agent.declaration import NOTICE, Declaration, EffectCall, Found
from celegraph.agent.dispatch import dispatch_once
from celegraph.channels import Channel
from celegraph.ledger import notices
from celegraph.ledger.approvals import get_approval
from celegraph.ledger.db_errors import in_log
from celegraph.ledger.effects import get_effect
from celegraph.ledger.pen import Pen
from celegraph.ledger.pool import ledger
from celegraph.tasks.channels import driven
from celegraph.tasks.installation import Installation
from celegraph.tasks.links import LIVES, link_url, sign_link
from celegraph.tasks.notice import Notice, What
from celegraph.tasks.telling import begin_telling

logger = logging.getLogger("celegraph")

# With the outbox's back-off: about two and a half hours of a channel that is down.
_TRIES = 24


def tell_beside(inst: Installation) -> list[str]:
    """Start telling what is due, in threads of their own; returns the channels that began just now."""
    with ledger(inst.config) as conn:
        due = notices.due(conn)
    started = []
    for name in (tool.removeprefix(NOTICE) for tool in due):
        if name not in inst.config.channels:
            # Opened under another configuration; it waits for the channel to come back.
            _say_once(name)
            continue
        if begin_telling(name, partial(_tell_quietly, inst, name)):
            started.append(name)
    return started


@lru_cache(maxsize=100)
def _say_once(name: str) -> None:
    logger.error("no such channel", extra={"channel": name})


def _tell_quietly(inst: Installation, name: str) -> None:
    try:
        tell(inst, name)
    except Exception as error:
        # Whatever was claimed stays due; the next tick goes on.
        logger.error("channel unusable", extra={"channel": name, "error": in_log(error)})


def tell(inst: Installation, name: str) -> dict[str, int]:
    """Tell everything that is due through one channel.  Safe in many processes at once."""
    declaration = declaration_of(inst, name, inst.config.channels[name])

    async def work() -> dict[str, int]:
        totals: dict[str, int] = {}
        pen = await Pen.open(inst.config)
        try:
            while True:
                report = await dispatch_once(
                    pen, inst.config, inst.policy_for, known={declaration.tool: declaration}
                )
                for outcome, count in report.counts().items():
                    totals[outcome] = totals.get(outcome, 0) + count
                if not any(report.counts().values()):
                    return totals
        finally:
            await pen.close()

    return asyncio.run(work())


def declaration_of(inst: Installation, name: str, channel: Channel) -> Declaration:
    """The channel as the outbox performs it."""
    ready = driven(channel)

    def tell_one(call: EffectCall, approval_id: str, what: What, n: int, to: str) -> dict[str, Any]:
        notice = notice_of(inst, call.key, approval_id, what, n, to)
        if what != "deadline" and notice.approval.status != "open":
            # It was answered while this lay in the outbox: nobody wants to be reminded of it.
            return {"told": False, "because": notice.approval.status}
        ready.tell(call, notice)
        return {"told": True}

    def look_up(call: EffectCall, approval_id: str, what: What, n: int, to: str) -> Found:
        assert ready.look_up is not None
        return ready.look_up(call, notice_of(inst, call.key, approval_id, what, n, to))

    signature = inspect.signature(tell_one)
    return Declaration(
        tool=f"{NOTICE}{name}",
        function=tell_one,
        signature=signature.replace(parameters=list(signature.parameters.values())[1:]),
        in_doubt="retry" if ready.look_up is None else "reconcile",
        lookup=None if ready.look_up is None else look_up,
        timeout=channel.timeout,
        tries=_TRIES,
        unattended=True,
    )


def notice_of(inst: Installation, key: str, approval_id: str, what: What, n: int, to: str) -> Notice:
    """The notice with its question as it is now.  Made from the rows alone: a second try says the same."""
    with ledger(inst.config) as conn:
        asked = get_approval(conn, approval_id)
        enqueued = get_effect(conn, key).created_at
    link = None
    if inst.config.site_url and inst.config.link_secret:
        ends = asked.deadline_at if asked.silence is not None else None
        token = sign_link(inst, approval_id, to, expires_at=ends or enqueued + LIVES)
        link = link_url(inst, token)
    return Notice(key=key, what=what, n=n, to=to, approval=asked, link=link)
