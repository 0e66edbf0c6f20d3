"""The README's code, as files."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")

# Each block names its file in its first line.
BLOCKS: dict[str, str] = {
    match[1]: match[0].removeprefix("```python\n").removesuffix("```")
    for match in re.finditer(r"```python\n# (\S+)\n.*?```", README, re.DOTALL)
}


def write(root: Path, *names: str) -> None:
    """The blocks of these files, below `root`."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(BLOCKS[name], encoding="utf-8")


# The provider of the examples: it writes down every refund it makes, and honours keys.
PAYMENTS = """\
from pathlib import Path

LOG = Path(__file__).with_name("refunds.log")


def paid(order):
    return 1999


def refund(order, cents, *, idempotency_key):
    seen = LOG.read_text().splitlines() if LOG.exists() else []
    if not any(line.startswith(idempotency_key) for line in seen):
        with LOG.open("a") as log:
            log.write(f"{idempotency_key} {order} {cents}\\n")
    return f"receipt for {order}"
"""
