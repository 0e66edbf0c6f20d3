"""Nodes use the ORM in threads that live for weeks."""

from __future__ import annotations

import pytest

from tests.django.support import Project

AGENTS = pytest.mark.parametrize("agent", ["pack", "apack"], ids=["sync node", "async node"])


def _eager(project: Project, **database: object) -> Project:
    return project.having(database=database, CELERY_TASK_ALWAYS_EAGER=True)


@AGENTS
def test_many_runs_leave_no_connection_behind(migrated: Project, agent: str) -> None:
    assert _eager(migrated, CONN_MAX_AGE=0).scene("node_scenes.many_runs", agent, "20", "0") == 20


@AGENTS
def test_many_runs_share_persistent_connections(migrated: Project, agent: str) -> None:
    assert _eager(migrated, CONN_MAX_AGE=600).scene("node_scenes.many_runs", agent, "20", "2") == 20


@AGENTS
def test_a_terminated_connection_costs_one_attempt_at_most(migrated: Project, agent: str) -> None:
    facts = _eager(migrated, CONN_MAX_AGE=None).scene("node_scenes.survives_termination", agent)

    assert facts["kept_open"] >= 1
    assert facts["attempts"] <= 2
    assert (facts["first"], facts["second"], facts["packed"]) == ("finished", "finished", 2)


def test_with_health_checks_it_costs_nothing(migrated: Project) -> None:
    project = _eager(migrated, CONN_MAX_AGE=None, CONN_HEALTH_CHECKS=True)

    assert project.scene("node_scenes.survives_termination", "pack")["attempts"] == 1
