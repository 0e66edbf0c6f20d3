"""`python -m examples.flask_shop`: the whole shop on this machine, until Ctrl-C.  No model is called."""

from __future__ import annotations

from examples.shop.stage import Shop, play

SHOP = Shop(
    name="Flask shop",
    app="examples.flask_shop.app:celery",
    prepare=[
        ["-m", "celegraph", "-A", "examples.flask_shop.app:celery", "migrate"],
        ["-m", "examples.flask_shop.open_shop"],
    ],
    web=["-m", "gunicorn", "--bind", "127.0.0.1:{port}", "--threads", "8", "examples.flask_shop.app:app"],
    port=5000,
)

if __name__ == "__main__":
    play(SHOP)
