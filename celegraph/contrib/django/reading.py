"""What the models have in common: they read the ledger's tables and write nothing.

A row that is written around the ledger's functions skips the compare-and-set, the event and the fence that
make it mean something.  So every way of Django's to write is refused, and the error names the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, TypeVar

from django.db import models

from celegraph.contrib.django.settings import ledger_alias, ledger_schema
from celegraph.errors import CelegraphError

M = TypeVar("M", bound=models.Model)


class ReadOnlyModel(CelegraphError, TypeError):
    """A model of the ledger was to be written; `instead` names the functions that do it."""

    def __init__(self, model: type[models.Model], instead: str):
        super().__init__(f"{model.__name__} is read-only, the ledger writes it: use {instead}")
        self.model = model
        self.instead = instead


def table(name: str) -> str:
    """The table's name with its schema; Django takes what is in quotes as it is."""
    return f'"{ledger_schema()}"."{name}"'


def _refuse(model: type[models.Model]) -> NoReturn:
    raise ReadOnlyModel(model, getattr(model, "instead", "celegraph's functions"))


def _refused(name: str) -> Callable[..., Any]:
    def method(self: Any, *_: Any, **__: Any) -> NoReturn:
        _refuse(self.model)

    method.__name__ = name
    return method


class LedgerQuerySet(models.QuerySet[M]):
    """Reads."""

    create = _refused("create")
    bulk_create = _refused("bulk_create")
    bulk_update = _refused("bulk_update")
    get_or_create = _refused("get_or_create")
    update_or_create = _refused("update_or_create")
    update = _refused("update")
    delete = _refused("delete")
    # What instances and cascades use.
    _update = _refused("_update")
    _insert = _refused("_insert")
    _raw_delete = _refused("_raw_delete")


class LedgerManager(models.Manager[M]):
    """Reads from the ledger's database, so that a project with several needs no router for it."""

    def get_queryset(self) -> LedgerQuerySet[M]:
        """Asked of the ledger's database; `using()` still names another."""
        return LedgerQuerySet(self.model, using=self._db or ledger_alias())


class Reading(models.Model):
    """A row of the ledger."""

    # For people: how it is changed.
    instead: ClassVar[str]

    class Meta:
        abstract = True
        # Without it Django's own machinery (related objects, refresh_from_db) would go around the manager.
        base_manager_name = "objects"

    def save(self, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        _refuse(type(self))

    async def asave(self, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        _refuse(type(self))

    def delete(self, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        _refuse(type(self))

    async def adelete(self, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        _refuse(type(self))
