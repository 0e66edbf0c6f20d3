"""The shop on a database of this file, and nothing of it left behind in the process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from celery import _state

from celegraph.ledger.pool import close_pools
from celegraph.tasks import installation, slot
from tests.flask.shop import Shop, Visitor


@pytest.fixture
def whole_process() -> Iterator[None]:
    """Celery's idea of the default and the current app, and ours of the newest, as they were before."""
    celery: Any = _state  # its own names, which celery-types does not know
    latest, default, current = list(installation._latest), celery.default_app, celery._tls.current_app
    yield
    installation._latest[:] = latest
    celery.default_app, celery._tls.current_app = default, current
    slot.close_current()
    close_pools()


@pytest.fixture
def shop(database_url: str, whole_process: None) -> Shop:
    """A shop without runs."""
    return Shop(database_url)


@pytest.fixture
def ada(shop: Shop) -> Visitor:
    """Somebody who may do everything."""
    return shop.visitor()
