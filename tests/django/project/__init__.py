"""A small Django project, run in processes of its own: Django's state is global."""

from tests.django.project.celery import app as celery_app

__all__ = ("celery_app",)
