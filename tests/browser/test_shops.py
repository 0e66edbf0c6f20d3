"""The shops as customers and managers see them; the providers' own logs say what really happened."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.visitor import Visitor, Visits

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("browser")]


def test_a_claim_waits_is_approved_in_the_inbox_and_pays_and_mails_once(
    visits: Visits, customer: Visitor, manager: Visitor
) -> None:
    customer.claim("A-1")

    manager.open_question("A-1")
    expect(manager.page.locator("body")).to_contain_text("It arrived broken")
    manager.page.get_by_role("button", name="Approve", exact=False).first.click()

    customer.sees_outcome("refunded 129.00 EUR")
    assert visits.paid("A-1") == [12_900]
    assert visits.mails("A-1") == ["Order A-1"]
