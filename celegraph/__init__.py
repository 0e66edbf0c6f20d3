"""Durable execution of LangGraph agents on Celery, Redis and PostgreSQL."""

__version__ = "0.1.0"
