"""A person in front of a browser window, and what really happened behind the shop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect

from examples.shop.stage import Stage
from tests.support.process import ROOT
from tests.support.waiting import eventually

# Artefacts of a test run; git ignores them.
PICTURES = ROOT / ".celegraph" / "pictures"
# Three worker processes, a web server and a browser on one busy machine.
_WITHIN_MS = 60_000

expect.set_options(timeout=_WITHIN_MS)


class Visitor:
    """One browser window, signed in."""

    def __init__(self, page: Page, url: str):
        self.page = page
        self.url = url
        page.set_default_timeout(_WITHIN_MS)

    def sign_in(self, name: str, password: str) -> None:
        """By the shop's own form."""
        self.page.goto(f"{self.url}/login/")
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("heading", name="Your orders")).to_be_visible()

    def claim(self, number: str, *, trial: bool = False) -> None:
        """Ask for a refund of this order, and see that it is being looked at."""
        self.write_claim(number)
        if trial:
            self.page.get_by_label("only a trial").check()
        self.send_claim()

    def write_claim(self, number: str, reason: str = "It arrived broken") -> None:
        """The form filled in, and not sent."""
        self.page.goto(f"{self.url}/orders/{number}")
        self.page.get_by_label("What went wrong?").fill(reason)

    def send_claim(self, *, twice: bool = False) -> None:
        """Sent, perhaps by a double click."""
        _click(self.page.get_by_role("button", name="Ask for a refund"), twice=twice)
        expect(self.page.locator("#waits")).to_be_visible()

    def sees_outcome(self, text: str) -> None:
        """The order's page follows the claim by itself."""
        expect(self.page.locator("#outcome")).to_contain_text(text)

    def open_question(self, number: str) -> None:
        """From the inbox, as soon as it is there, to the question about this order."""
        card = self.page.locator("a.card-link").filter(has_text=f"of order {number} ")

        def listed() -> bool:
            # The inbox shows what was open when it was asked for.
            self.page.goto(f"{self.url}/agents/")
            return card.count() > 0

        eventually(listed, within=60)
        card.click()
        expect(self.page.get_by_role("heading", name="Your answer")).to_be_visible()

    def answer(self, verb: str, *, note: str = "", twice: bool = False) -> None:
        """With one of the question's buttons, perhaps by a double click."""
        if note:
            self.page.get_by_label("Note").first.fill(note)
        _click(self.page.get_by_role("button", name=verb, exact=True), twice=twice)

    def change(self, argument: str, value: str) -> None:
        """Approve with another value of one argument."""
        self.page.get_by_text("Change the arguments and approve").first.click()
        self.page.get_by_label(argument).fill(value)
        self.page.get_by_role("button", name="Change and approve").click()

    def another_tab(self) -> Visitor:
        """The same person, the same page, a second tab."""
        page = self.page.context.new_page()
        page.goto(self.page.url)
        return Visitor(page, self.url)

    def picture(self, path: Path) -> None:
        """What the window shows."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path, full_page=True)


def _click(button: Locator, *, twice: bool) -> None:
    if twice:
        button.dblclick()
    else:
        button.click()


class Visits:
    """The visitors of one test."""

    def __init__(self, stage: Stage, browser: Browser, pictures: Path):
        self.stage = stage
        self._browser = browser
        self._pictures = pictures
        self._visitors: dict[str, Visitor] = {}

    def sign_in(self, name: str) -> Visitor:
        """A new window with cookies of its own."""
        visitor = Visitor(self._browser.new_context().new_page(), self.stage.url)
        self._visitors[name] = visitor
        visitor.sign_in(name, self.stage.password)
        return visitor

    def stranger(self) -> Visitor:
        """A window in which nobody has signed in."""
        self._visitors["stranger"] = Visitor(self._browser.new_context().new_page(), self.stage.url)
        return self._visitors["stranger"]

    def close(self) -> None:
        """A last picture of everybody's window."""
        for name, visitor in self._visitors.items():
            visitor.picture(self._pictures / f"{name}.png")
            visitor.page.context.close()

    def paid(self, number: str) -> list[int]:
        """Cents that the payment provider really moved for this order."""
        log = self.stage.payments_log
        lines = log.read_text().splitlines() if log.exists() else []
        made: list[dict[str, Any]] = [json.loads(line) for line in lines]
        return [act["amount"] for act in made if act["metadata"]["run"] == f"refund-{number}"]

    def mails(self, number: str) -> list[str]:
        """Subjects of the mails to the customer that the mail server really took for this order."""
        return self.told("customer", number)

    def told(self, name: str, number: str) -> list[str]:
        """Subjects of the mails about this order that the mail server took for somebody."""
        sent = [mail for mail in self.stage.smtp.deliveries() if mail.to == (f"{name}@shop.example",)]
        return [mail.subject for mail in sent if mail.run_id == f"refund-{number}"]
