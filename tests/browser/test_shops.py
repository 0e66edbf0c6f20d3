"""The shops as customers and managers see them; the providers' own logs say what really happened."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.visitor import Visitor, Visits
from tests.support.waiting import eventually

# One group: the two shops are opened one after the other.
pytestmark = [pytest.mark.timeout(400), pytest.mark.xdist_group("browser")]


def test_a_claim_waits_is_approved_in_the_inbox_and_pays_and_mails_once(
    visits: Visits, customer: Visitor, manager: Visitor
) -> None:
    """A double click on "Approve", and a "Reject" in a second tab that was open all the time."""
    customer.claim("A-1")
    manager.open_question("A-1")
    expect(manager.page.get_by_text("The customer writes: It arrived broken")).to_be_visible()
    expect(manager.page.get_by_role("cell", name="12900", exact=True)).to_be_visible()
    second_tab = manager.another_tab()

    manager.answer("Approve", twice=True)

    expect(manager.page.get_by_text("Your answer is recorded")).to_be_visible()
    customer.sees_outcome("refunded 129.00 EUR")
    second_tab.answer("Reject")
    expect(second_tab.page.get_by_text("already approved by manager")).to_be_visible()
    assert visits.paid("A-1") == [12_900]
    assert visits.mails("A-1") == ["Order A-1"]


def test_a_claim_that_is_sent_twice_is_one_run_and_one_question(
    visits: Visits, customer: Visitor, manager: Visitor
) -> None:
    customer.write_claim("A-2")
    other_tab = customer.another_tab()
    other_tab.write_claim("A-2", "It arrived late and broken")

    customer.send_claim(twice=True)
    other_tab.send_claim()
    manager.open_question("A-2")
    manager.answer("Reject", note="It was the courier")

    customer.sees_outcome("declined: It was the courier")
    eventually(lambda: visits.mails("A-2"))
    assert visits.paid("A-2") == []
    assert visits.mails("A-2") == ["Order A-2"]


def test_a_manager_lowers_the_amount_and_just_that_is_paid(
    visits: Visits, customer: Visitor, manager: Visitor
) -> None:
    customer.claim("A-3")
    manager.open_question("A-3")

    manager.change("cents", "1700")

    customer.sees_outcome("refunded 17.00 EUR")
    assert visits.paid("A-3") == [1_700]


def test_a_read_only_run_pays_nothing_and_tells_nobody(
    visits: Visits, customer: Visitor, manager: Visitor
) -> None:
    customer.claim("A-4", trial=True)
    manager.open_question("A-4")
    manager.answer("Approve")

    customer.sees_outcome("trial run: nothing was paid, and nobody was told")
    assert visits.paid("A-4") == []
    assert visits.mails("A-4") == []


def test_the_head_is_asked_after_a_short_deadline_and_a_late_click_changes_nothing(
    visits: Visits, customer: Visitor
) -> None:
    head = visits.sign_in("head")
    customer.claim("U-1")
    head.open_question("U-1")
    eventually(lambda: visits.told("head", "U-1"), within=60)

    customer.sees_outcome("declined: nobody answered in time")
    head.answer("Approve")

    expect(head.page.get_by_text("nobody answered in time. Your click changed nothing")).to_be_visible()
    assert visits.paid("U-1") == []
    assert visits.mails("U-1") == ["Order U-1"]


def test_a_customer_sees_nothing_of_the_agents_and_a_stranger_is_asked_to_sign_in(
    visits: Visits, customer: Visitor
) -> None:
    customer.page.goto(f"{visits.stage.url}/agents/runs/refund-A-1")
    stranger = visits.stranger()
    stranger.page.goto(f"{visits.stage.url}/agents/")

    expect(customer.page.get_by_role("heading", name="No such run")).to_be_visible()
    expect(stranger.page.get_by_role("heading", name="Sign in")).to_be_visible()
