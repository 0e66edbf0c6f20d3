"""How the admin lists tables of any size: filters without DISTINCT, counts that end somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property

from celegraph.contrib.django.permissions import agents_for
from celegraph.errors import NotInstalled
from celegraph.tasks.installation import installation

# Nobody turns a hundred pages; who looks for an older row filters.
_MOST_ROWS = 10_000

if TYPE_CHECKING:
    _Paginator = Paginator[Any]
else:
    _Paginator = Paginator


class CappedPaginator(_Paginator):
    """Counts up to a bound: PostgreSQL would read the whole table for every page."""

    @cached_property
    def count(self) -> int:
        """The number of rows, at most 10,000."""
        rows: Any = self.object_list
        return int(rows.order_by()[:_MOST_ROWS].count())


class AgentFilter(admin.SimpleListFilter):
    """By the agents that are installed here and this user may see."""

    title = "agent"
    parameter_name = "agent"
    field = "agent"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The choices."""
        names = agents_for(request.user, "view")
        if names is None:
            try:
                names = list(installation().agents)
            except NotInstalled:
                names = []
        return [(name, name) for name in names]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows of the chosen agent."""
        return queryset.filter(**{self.field: self.value()}) if self.value() else queryset


class AgentOfRunFilter(AgentFilter):
    """For what belongs to a run."""

    field = "run__agent"
