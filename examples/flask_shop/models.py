"""What was bought, what is claimed back, and who may sign in."""

from __future__ import annotations

import os

from sqlalchemy import ForeignKey, create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship, sessionmaker


class Base(DeclarativeBase):
    """The shop's tables."""


class Person(Base):
    """Somebody who can sign in; `rights` are celegraph's actions, with spaces between."""

    __tablename__ = "people"
    name: Mapped[str] = mapped_column(primary_key=True)
    mail: Mapped[str]
    password: Mapped[str]
    rights: Mapped[str]


class Order(Base):
    """One order of one customer."""

    __tablename__ = "orders"
    number: Mapped[str] = mapped_column(primary_key=True)
    customer: Mapped[str] = mapped_column(ForeignKey("people.name"))
    what: Mapped[str]
    cents: Mapped[int]
    urgent: Mapped[bool]
    claim: Mapped[Claim | None] = relationship(back_populates="order")


class Claim(Base):
    """A customer wants the money back; `outcome` is written by the agent's last step."""

    __tablename__ = "claims"
    order_number: Mapped[str] = mapped_column(ForeignKey("orders.number"), primary_key=True)
    reason: Mapped[str]
    run_id: Mapped[str] = mapped_column(unique=True)
    outcome: Mapped[str] = mapped_column(default="")
    order: Mapped[Order] = relationship(back_populates="claim")


# psycopg 3, so that a run can be admitted in the session's own transaction.
engine = create_engine(os.environ["SHOP_DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://", 1))
Session = sessionmaker(engine)
