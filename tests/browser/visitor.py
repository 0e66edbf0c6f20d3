"""A person in front of a browser window, and what really happened behind the shop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from examples.shop.stage import Stage
from tests.support.process import ROOT

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

    def claim(self, number: str, reason: str = "It arrived broken", *, trial: bool = False) -> None:
        """Ask for a refund of this order, and see that it is being looked at."""
        self.page.goto(f"{self.url}/orders/{number}")
        self.page.get_by_label("What went wrong?").fill(reason)
        if trial:
            self.page.get_by_label("only a trial").check()
        self.page.get_by_role("button", name="Ask for a refund").click()
        expect(self.page.locator("#waits")).to_be_visible()

    def sees_outcome(self, text: str) -> None:
        """The order's page follows the claim by itself."""
        expect(self.page.locator("#outcome")).to_contain_text(text)

    def open_question(self, number: str) -> None:
        """From the inbox to the question about this order."""
        self.page.goto(f"{self.url}/agents/")
        card = self.page.locator("a.card-link").filter(has_text=f"of order {number} ")
        self.page.wait_for_timeout(0)
        for _ in range(120):
            if card.count():
                break
            # The inbox shows what was open when it was asked for.
            self.page.wait_for_timeout(500)
            self.page.reload()
        card.click()
        expect(self.page.get_by_role("heading", level=1)).to_be_visible()

    def another_tab(self) -> Visitor:
        """The same person, the same page, a second tab."""
        page = self.page.context.new_page()
        page.goto(self.page.url)
        return Visitor(page, self.url)

    def picture(self, path: Path) -> None:
        """What the window shows."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path, full_page=True)


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
        sent = [mail for mail in self.stage.smtp.deliveries() if mail.to == ("customer@shop.example",)]
        return [mail.subject for mail in sent if mail.run_id == f"refund-{number}"]
