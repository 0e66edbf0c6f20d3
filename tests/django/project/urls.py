"""The site's URLs."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from tests.django.project import views

urlpatterns = [
    path("admin/", admin.site.urls),
    path("start", views.start),
    path("astart", views.astart),
    path("agents/", include("celegraph.contrib.django.urls")),
]
