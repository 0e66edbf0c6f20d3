"""What a customer sees and does.  Managers decide on celegraph's own pages."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, abort, redirect, render_template, request
from flask import session as browser
from flask_wtf.csrf import generate_csrf
from markupsafe import Markup
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session as Db
from sqlalchemy.orm import joinedload
from werkzeug.wrappers import Response

from celegraph import start_run
from examples.flask_shop.models import Claim, Order, Session
from examples.flask_shop.people import SignedIn, must_sign_in, sign_in, visitor
from examples.shop.claims import cleaned_reason, run_input

shop = Blueprint("shop", __name__)

Answer = str | Response | tuple[str, int]


@shop.get("/")
def orders() -> Answer:
    """One's own orders."""
    person = visitor()
    mine: list[Order] = []
    if isinstance(person, SignedIn):
        with Session() as db:
            mine = list(db.scalars(select(Order).filter_by(customer=person.name).order_by(Order.number)))
    decides = isinstance(person, SignedIn) and "decide" in person.rights
    return _page("orders.html", user=person, orders=mine, decides=decides)


@shop.get("/orders/<number>")
def order(number: str) -> Answer:
    """One order: the form, or how its claim stands."""
    person = must_sign_in(request.path)
    with Session() as db:
        found = _order(db, number, person)
    return _page("order.html", user=person, order=found, claim=found.claim)


@shop.post("/orders/<number>/claim")
def claim(number: str) -> Answer:
    """The claim and its run in one transaction; a second click finds the first one's."""
    person = must_sign_in("/")
    reason, problem = cleaned_reason(request.form.get("reason", ""))
    with Session() as db:
        found = _order(db, number, person)
        if problem:
            return _page("order.html", user=person, order=found, claim=None, problem=problem), 422
        run_id = f"refund-{number}"
        db.add(Claim(order_number=number, reason=reason, run_id=run_id))
        try:
            db.flush()
        except IntegrityError:
            return redirect(f"/orders/{number}")
        start_run.admit(
            "refund",
            run_input(found, customer=person.mail, reason=reason),
            run_id=run_id,
            read_only="trial" in request.form,
            connection=db,
        )
        db.commit()
    return redirect(f"/orders/{number}")


@shop.route("/login/", methods=["GET", "POST"])
def login() -> Answer:
    """Back to where somebody came from, if that is here."""
    back = request.values.get("next", "")
    if request.method == "GET":
        return _page("login.html", user=visitor(), next=back)
    if not sign_in(request.form.get("username", ""), request.form.get("password", "")):
        return _page("login.html", user=visitor(), next=back, problem=True), 422
    return redirect(back if _is_ours(back) else "/")


@shop.post("/logout/")
def logout() -> Answer:
    """The session ends."""
    browser.clear()
    return redirect("/")


def _is_ours(back: str) -> bool:
    """A path of this site.  Browsers read a backslash as a slash and leave tabs and line ends out."""
    return back.startswith("/") and not back.startswith("//") and back.isprintable() and "\\" not in back


def _order(db: Db, number: str, person: SignedIn) -> Order:
    query = select(Order).filter_by(number=number, customer=person.name).options(joinedload(Order.claim))
    found = db.scalars(query).first()
    if found is None:
        abort(404)
    return found


def _page(template: str, **context: Any) -> str:
    # What Django calls it in the templates that both shops share.
    token = Markup('<input type="hidden" name="csrf_token" value="{}">').format(generate_csrf())
    return render_template(template, csrf_input=token, **context)
