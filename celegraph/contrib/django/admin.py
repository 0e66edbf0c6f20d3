"""The ledger in Django's admin: to look at, filter and search; changes go through celegraph's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

import celegraph
from celegraph.contrib.django.listing import AgentFilter, AgentOfRunFilter, CappedPaginator
from celegraph.contrib.django.models import Approval, Effect, Event, Run
from celegraph.contrib.django.permissions import Action, agents_for, may
from celegraph.contrib.web.addresses import segment
from celegraph.contrib.web.shown import stored
from celegraph.errors import CelegraphError
from celegraph.tasks.resolve import ANSWERS

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = admin.ModelAdmin


class LedgerAdmin(_ModelAdmin):
    """Nothing is added, changed or deleted here; rows of agents the user may not see are not there."""

    # From the row to its run's agent.
    agent_path = "run__agent"
    actions_on_bottom = True
    list_per_page = 50
    paginator = CappedPaginator
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The rows this user may see."""
        return self._of_agents(super().get_queryset(request), request, "view")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: agents write the ledger."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: see the actions."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: the ledger says what was paid."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """For this row's agent, or for any."""
        return self._may(request, "view", obj)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether "celegraph" is on the admin's first page."""
        return self._may(request, "view")

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Whether the actions are offered; which rows they may touch is asked again for each."""
        return self._may(request, "operate")

    def _may(self, request: HttpRequest, action: Action, obj: Any = None) -> bool:
        if obj is None:
            return agents_for(request.user, action) != []
        return may(request.user, action, obj.agent if isinstance(obj, Run) else obj.run.agent)

    def _of_agents(self, rows: QuerySet[Any], request: HttpRequest, action: Action) -> QuerySet[Any]:
        names = agents_for(request.user, action)
        return rows if names is None else rows.filter(**{f"{self.agent_path}__in": names})

    def _each(
        self, request: HttpRequest, rows: QuerySet[Any], done: str, act: Callable[[str], object]
    ) -> None:
        """`act` on every row that the user may operate; one that refuses does not stop the others."""
        allowed = self._of_agents(rows, request, "operate").order_by("pk")
        keys = list(allowed.values_list("pk", flat=True))
        worked = 0
        for key in keys:
            try:
                act(key)
                worked += 1
            except CelegraphError as error:
                self.message_user(request, str(error), messages.WARNING)
        if worked:
            self.message_user(request, f"{worked} {done}", messages.SUCCESS)
        if kept := rows.count() - len(keys):
            self.message_user(request, f"{kept} left alone: not your agents", messages.WARNING)


@admin.register(Run)
class RunAdmin(LedgerAdmin):
    """Runs, and what people do to them."""

    agent_path = "agent"
    list_display = ("run_id", "agent", "status", "reason", "created_at", "updated_at")
    list_filter = ("status", AgentFilter, "read_only", "created_at")
    search_fields = ("run_id__startswith",)
    search_help_text = "the beginning of a run id"
    readonly_fields = ("belongs",)
    actions = ("cancel", "pause", "resume", "retry", "release")

    @admin.display(description="belongs to it")
    def belongs(self, run: Run) -> SafeString:
        """Links to the run's rows in the other lists, and to its page."""
        lists = ((name, _list_url(model, run)) for name, model in _BELONGINGS)
        page = _page("run", run=segment(run.run_id))
        return _links([*lists, *([("timeline", page)] if page else [])])

    @admin.action(permissions=["operate"], description="Cancel")
    def cancel(self, request: HttpRequest, rows: QuerySet[Run]) -> None:
        """Any unfinished status -> cancelled, at once or at the running owner's next step."""
        reason = f"cancelled by {_name(request)}"
        self._each(request, rows, "cancelled", lambda key: celegraph.cancel_run(key, reason=reason))

    @admin.action(permissions=["operate"], description="Pause")
    def pause(self, request: HttpRequest, rows: QuerySet[Run]) -> None:
        """ready | waiting -> paused, at once; running -> paused by its owner at its next step."""
        reason = f"paused by {_name(request)}"
        self._each(request, rows, "paused", lambda key: celegraph.pause_run(key, reason=reason))

    @admin.action(permissions=["operate"], description="Resume paused runs")
    def resume(self, request: HttpRequest, rows: QuerySet[Run]) -> None:
        """paused -> ready, or a pause that has not happened yet is taken back."""
        by = _name(request)
        self._each(request, rows, "resumed", lambda key: celegraph.resume_run(key, by=by))

    @admin.action(permissions=["operate"], description="Retry failed runs from where they stand")
    def retry(self, request: HttpRequest, rows: QuerySet[Run]) -> None:
        """failed -> ready."""
        by = _name(request)
        self._each(request, rows, "to be tried again", lambda key: celegraph.retry_run(key, by=by))

    @admin.action(permissions=["operate"], description="Release quarantined runs")
    def release(self, request: HttpRequest, rows: QuerySet[Run]) -> None:
        """quarantined -> ready."""
        by = _name(request)
        self._each(request, rows, "released", lambda key: celegraph.release_run(key, by=by))


@admin.register(Effect)
class EffectAdmin(LedgerAdmin):
    """What agents did in the world, and whether it happened."""

    list_display = ("tool", "run", "status", "attempts", "provider_ref", "doubt_after", "updated_at")
    list_filter = ("status", AgentOfRunFilter, "created_at")
    list_select_related = ("run",)
    search_fields = ("idempotency_key__exact", "provider_ref__exact", "run__exact")
    search_help_text = "a key, a provider's reference or a run id, whole"
    actions = ("resolve", "release_letter")

    @admin.action(permissions=["operate"], description="Say whether effects in doubt happened")
    def resolve(self, request: HttpRequest, rows: QuerySet[Effect]) -> HttpResponse | None:
        """First a page that asks: the answer decides whether a provider is called again."""
        answer = request.POST.get("answer")
        if answer not in ANSWERS:
            return TemplateResponse(request, "admin/celegraph/resolve.html", self._questions(request, rows))
        by, note = _name(request), request.POST.get("note") or None
        # A reference is one call's: it cannot be meant for several.
        ref = (request.POST.get("ref") or None) if rows.count() == 1 else None
        self._each(
            request,
            rows,
            f"resolved as {answer.replace('_', ' ')}",
            lambda key: celegraph.resolve_effect(key, answer, ref=ref, by=by, note=note),
        )
        return None

    def _questions(self, request: HttpRequest, rows: QuerySet[Effect]) -> dict[str, Any]:
        return {
            **self.admin_site.each_context(request),
            "title": "Did it happen?",
            # As on the pages: what a person answers for must not hide anything.
            "questions": [
                (effect, stored(effect.args).text) for effect in self._of_agents(rows, request, "operate")
            ],
            "opts": self.opts,
            "action_checkbox_name": ACTION_CHECKBOX_NAME,
        }

    @admin.action(permissions=["operate"], description="Try dead letters of the outbox again")
    def release_letter(self, request: HttpRequest, rows: QuerySet[Effect]) -> None:
        """An enqueued effect that was given up is dispatched again."""
        by = _name(request)
        self._each(request, rows, "released", lambda key: celegraph.release_effect(key, by=by))


@admin.register(Approval)
class ApprovalAdmin(LedgerAdmin):
    """Questions.  They are answered on their own page, where everything that is bound is shown."""

    list_display = ("approval_id", "run", "kind", "tool", "status", "decided_by", "deadline_at", "answer")
    list_filter = ("status", AgentOfRunFilter, "created_at")
    list_select_related = ("run",)
    search_fields = ("approval_id__exact", "run__exact", "decided_by__exact")
    search_help_text = "an approval id, a run id or who decided, whole"
    readonly_fields = ("answer",)

    @admin.display(description="answer")
    def answer(self, approval: Approval) -> SafeString | str:
        """The link to its page; without one the command says how."""
        if approval.status != "open":
            return "-"
        page = _page("approval", approval=approval.approval_id)
        return _links([("answer", page)]) if page else f"celegraph decide {approval.approval_id}"


@admin.register(Event)
class EventAdmin(LedgerAdmin):
    """What happened, newest first."""

    list_display = ("seq", "at", "run", "kind", "epoch", "data")
    list_filter = (AgentOfRunFilter,)
    list_select_related = ("run",)
    ordering = ("-seq",)
    search_fields = ("run__exact", "kind__exact")
    search_help_text = "a run id or a kind of event, whole"


_BELONGINGS: tuple[tuple[str, type[Model]], ...] = (
    ("effects", Effect),
    ("questions", Approval),
    ("events", Event),
)


def _name(request: HttpRequest) -> str:
    return str(request.user.get_username())


def _list_url(model: type[Model], run: Run) -> str:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
    return f"{reverse(name)}?{urlencode({'q': run.run_id})}"


def _page(route: str, **params: str) -> str | None:
    """The URL of one of celegraph's pages, if the project has them (see `urls`)."""
    try:
        return reverse(f"celegraph:{route}", kwargs=params)
    except NoReverseMatch:
        return None


def _links(links: Iterable[tuple[str, str]]) -> SafeString:
    made = [format_html('<a href="{}">{}</a>', url, text) for text, url in links]
    return format_html("{} " * len(made), *made)
