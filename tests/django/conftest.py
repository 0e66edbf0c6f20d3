"""The project, with a database and a broker for this test."""

from __future__ import annotations

import pytest

from tests.django.support import Project


@pytest.fixture
def project(empty_database_url: str, broker_url: str) -> Project:
    """Nothing migrated yet."""
    return Project(empty_database_url, broker_url)


@pytest.fixture
def migrated(project: Project) -> Project:
    """After `manage.py migrate`."""
    project.manage("migrate", "--verbosity", "0")
    return project


@pytest.fixture
def site(project: Project) -> Project:
    """The project with people, sessions and an admin, migrated."""
    having = project.with_env(PROJECT_WITH_SITE="1")
    having.manage("migrate", "--verbosity", "0")
    return having
