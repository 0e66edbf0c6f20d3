"""What both shops know when they are opened: two orders per customer, and who works there."""

from __future__ import annotations

import os
from dataclasses import dataclass

MAIL_DOMAIN = "shop.example"


@dataclass(frozen=True)
class DemoPerson:
    """Somebody who can sign in; `rights` are celegraph's actions."""

    name: str
    rights: tuple[str, ...] = ()

    @property
    def mail(self) -> str:
        """Where mail to this person goes."""
        return f"{self.name}@{MAIL_DOMAIN}"


@dataclass(frozen=True)
class DemoOrder:
    """Something bought; the payment provider can refund `ch_<cents>` up to that amount."""

    number: str
    customer: str
    what: str
    cents: int
    urgent: bool = False


PEOPLE = (
    DemoPerson("customer"),
    DemoPerson("manager", ("view", "decide")),
    DemoPerson("head", ("view", "decide", "operate")),
)
ORDERS = (
    DemoOrder("A-1", "customer", "a coffee grinder", 12_900),
    DemoOrder("A-2", "customer", "a kettle", 4_950),
    DemoOrder("A-3", "customer", "a teapot", 3_400),
    DemoOrder("A-4", "customer", "a tin of tea", 890),
    DemoOrder("U-1", "customer", "a birthday cake (urgent)", 2_590, urgent=True),
)


def demo_password() -> str:
    """Of all demo logins; made anew at every start."""
    return os.environ["SHOP_PASSWORD"]
