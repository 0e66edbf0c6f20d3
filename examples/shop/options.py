"""celegraph's options of both shops, from the environment that `stage` makes."""

from __future__ import annotations

import os
from typing import Any

from examples.shop.goods import MAIL_DOMAIN, PEOPLE


def celegraph_options() -> dict[str, Any]:
    """Where the pages are, what signs their links, and how people are told."""
    return {
        "site_url": os.environ["SHOP_URL"] + "/agents",
        "link_secret": os.environ["SHOP_SECRET"],
        "channels": {
            "email": {
                "kind": "smtp",
                "url": os.environ["SHOP_SMTP_URL"],
                "sender": f"agents@{MAIL_DOMAIN}",
                "people": {person.name: person.mail for person in PEOPLE},
            }
        },
    }
