"""A shop in Django whose refunds are decided by people and made by an agent."""

from examples.django_shop.celery import app as celery_app

__all__ = ("celery_app",)
