"""What a customer sees and does.  Managers decide on celegraph's own pages."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from celegraph import start_run
from celegraph.contrib.django.permissions import may
from examples.django_shop.orders.models import Claim, Order
from examples.shop.claims import cleaned_reason, run_input


def orders(request: HttpRequest) -> HttpResponse:
    """One's own orders, each with its claim if there is one."""
    mine = Order.objects.none()
    if request.user.is_authenticated:
        mine = Order.objects.filter(customer=request.user).select_related("claim").order_by("number")
    decides = may(request.user, "decide")
    return render(request, "orders.html", {"user": request.user, "orders": mine, "decides": decides})


@login_required
def order(request: HttpRequest, number: str) -> HttpResponse:
    """One order: the form, or how its claim stands."""
    found = get_object_or_404(Order, number=number, customer=request.user)
    claim = Claim.objects.filter(order=found).first()
    return render(request, "order.html", {"user": request.user, "order": found, "claim": claim})


@login_required
@require_POST
def claim(request: HttpRequest, number: str) -> HttpResponse:
    """The claim and its run in one transaction; a second click finds the first one's."""
    found = get_object_or_404(Order, number=number, customer=request.user)
    reason, problem = cleaned_reason(request.POST.get("reason", ""))
    if problem:
        context = {"user": request.user, "order": found, "claim": None, "problem": problem}
        return render(request, "order.html", context, status=422)
    run_id = f"refund-{found.number}"
    _, new = Claim.objects.get_or_create(order=found, defaults={"reason": reason, "run_id": run_id})
    if new:
        assert isinstance(request.user, User)
        start_run.delay(
            "refund",
            run_input(found, customer=request.user.email, reason=reason),
            run_id=run_id,
            read_only="trial" in request.POST,
        )
    return redirect("order", number=found.number)
