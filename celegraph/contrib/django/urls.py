"""The pages: `path("agents/", include("celegraph.contrib.django.urls"))`; `reverse("celegraph:inbox")`."""

from __future__ import annotations

from django.urls import path

from celegraph.contrib.django.views import view_of
from celegraph.contrib.web import ROUTES

app_name = "celegraph"
urlpatterns = [path(route.path.lstrip("/"), view_of(route), name=route.name) for route in ROUTES]
