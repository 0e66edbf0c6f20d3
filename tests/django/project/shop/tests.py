"""What a host's own tests look like; run by `manage.py test`."""

from __future__ import annotations

from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase

import celegraph
from celegraph.tasks.installation import installation
from tests.django.project.shop.models import Order

# Read before Django has made the test database, as an import of somebody's may do.
_EARLY = installation().config.database_url


class Committed(TransactionTestCase):
    """Runs are driven to their end: what the test writes is committed, so node threads see it."""

    def setUp(self) -> None:
        installation().app.conf.task_always_eager = True
        self.addCleanup(installation().app.conf.update, task_always_eager=False)

    def test_a_run_goes_to_the_test_database(self) -> None:
        Order.objects.create(number="A-1")

        with transaction.atomic():
            result = celegraph.start_run.delay("pack", {"order": "A-1"})

        assert result.get(timeout=1) == {"order": "A-1", "packed": 1}
        assert installation().config.database_url != _EARLY
        assert connection.settings_dict["NAME"].startswith("test_")

    def test_decisions_are_taken_like_in_a_view(self) -> None:
        result = celegraph.start_run.delay("refund", {"order": "A-1", "cents": 5})
        (asked,) = celegraph.list_approvals(run_id=result.id)

        celegraph.decide(asked.approval_id, "approve", by="test")

        assert result.get(timeout=1)["receipt"] == "A-1: 5"

    async def test_async_views_drive_too(self) -> None:
        await Order.objects.acreate(number="A-2")

        result = celegraph.start_run.delay("apack", {"order": "A-2"})

        assert result.get(timeout=1)["packed"] == 1


class NeverCommitted(TestCase):
    """The block of the test is rolled back: a start can be seen, a run cannot be driven."""

    def test_a_start_is_checked_and_rings_on_commit(self) -> None:
        with self.captureOnCommitCallbacks() as callbacks:
            celegraph.start_run.delay("pack", {"order": "A-1"})

        assert len(callbacks) == 1
