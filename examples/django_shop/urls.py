"""The shop for its customers, the pages for its managers, the admin for its operators."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

from examples.django_shop.orders import views

urlpatterns = [
    path("", views.orders, name="orders"),
    path("orders/<str:number>/claim", views.claim, name="claim"),
    path("orders/<str:number>", views.order, name="order"),
    path("login/", LoginView.as_view(template_name="login.html"), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("agents/", include("celegraph.contrib.django.urls")),
    path("admin/", admin.site.urls),
]
