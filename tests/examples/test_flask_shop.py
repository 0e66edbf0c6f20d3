"""The Flask shop's sign-in leads back into the shop and nowhere else."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("back", ["/", "/orders/A-1", "/agents/?kind=doubt", "/agents/approvals/ap-1"])
def test_a_path_of_the_shop_is_gone_back_to(monkeypatch: pytest.MonkeyPatch, back: str) -> None:
    assert _is_ours(monkeypatch, back)


@pytest.mark.parametrize(
    "back", ["", "https://evil.example", "//evil.example", "/\\evil.example", "/\t/evil.example", "/\n/evil"]
)
def test_what_a_browser_takes_for_another_site_is_not(monkeypatch: pytest.MonkeyPatch, back: str) -> None:
    assert not _is_ours(monkeypatch, back)


def _is_ours(monkeypatch: pytest.MonkeyPatch, back: str) -> bool:
    # Read at import; nothing connects.
    monkeypatch.setenv("SHOP_DATABASE_URL", "postgresql://nobody@nowhere/none")
    from examples.flask_shop import views

    return views._is_ours(back)
