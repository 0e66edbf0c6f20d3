"""`python -m examples.django_shop`: the whole shop on this machine, until Ctrl-C.  No model is called."""

from __future__ import annotations

from examples.shop.stage import Shop, play

_MANAGE = ["-m", "examples.django_shop.manage"]

SHOP = Shop(
    name="Django shop",
    app="examples.django_shop",
    prepare=[[*_MANAGE, "migrate", "--verbosity", "0"], [*_MANAGE, "check"], [*_MANAGE, "open_shop"]],
    web=["-m", "examples.django_shop.manage", "runserver", "--noreload", "127.0.0.1:{port}"],
    port=8000,
    also={"admin": "/admin/"},
)

if __name__ == "__main__":
    play(SHOP)
