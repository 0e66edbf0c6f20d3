"""Signing in, and what celegraph's pages ask about whoever is signed in."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from flask import Request, abort, redirect, session
from werkzeug.security import check_password_hash

from celegraph.contrib.flask import Action, Viewer
from examples.flask_shop.models import Person, Session


@dataclass(frozen=True)
class SignedIn:
    """Somebody of the shop, as its pages and celegraph's see them."""

    name: str
    mail: str
    rights: frozenset[str]
    # The templates are shared with Django.
    is_authenticated: bool = True

    @property
    def username(self) -> str:
        """As the templates call it."""
        return self.name

    def may(self, action: Action, agent: str) -> bool:
        """This shop has one agent, and rights for all of it."""
        return action in self.rights


@dataclass(frozen=True)
class Nobody:
    """Not signed in."""

    is_authenticated: bool = False


def sign_in(name: str, password: str) -> bool:
    """Remember `name` in the session if the password is theirs."""
    with Session() as db:
        person = db.get(Person, name)
    if person is None or not check_password_hash(person.password, password):
        return False
    session.clear()
    session["name"] = name
    return True


def visitor() -> SignedIn | Nobody:
    """Who is signed in."""
    with Session() as db:
        person = db.get(Person, session.get("name", ""))
    if person is None:
        return Nobody()
    return SignedIn(person.name, person.mail, frozenset(person.rights.split()))


def must_sign_in(back_to: str) -> SignedIn:
    """Who is signed in; everybody else is sent to the sign-in page."""
    found = visitor()
    if isinstance(found, Nobody):
        abort(redirect(f"/login/?{urlencode({'next': back_to})}"))
    return found


def authorise(request: Request) -> Viewer | None:
    """For celegraph's pages; who has no rights finds nothing there."""
    found = must_sign_in(request.path) if request.method == "GET" else visitor()
    return found if isinstance(found, SignedIn) else None
