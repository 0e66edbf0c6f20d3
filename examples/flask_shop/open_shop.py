"""`python -m examples.flask_shop.open_shop`: the tables, the demo's people and orders; twice is harmless."""

from __future__ import annotations

from werkzeug.security import generate_password_hash

from examples.flask_shop.models import Base, Order, Person, Session, engine
from examples.shop.goods import ORDERS, PEOPLE, demo_password


def main() -> None:
    """Fills an empty shop."""
    Base.metadata.create_all(engine)
    with Session.begin() as session:
        hashed = generate_password_hash(demo_password())
        for person in PEOPLE:
            rights = " ".join(person.rights)
            session.merge(Person(name=person.name, mail=person.mail, password=hashed, rights=rights))
        session.flush()
        for order in ORDERS:
            session.merge(
                Order(
                    number=order.number,
                    customer=order.customer,
                    what=order.what,
                    cents=order.cents,
                    urgent=order.urgent,
                )
            )


if __name__ == "__main__":
    main()
