"""Logins of the project; used by scenes."""

from __future__ import annotations

import uuid

from django.contrib.auth.models import Permission, User
from django.test import Client


def person(*permissions: str, name: str = "", staff: bool = True, superuser: bool = False) -> User:
    """Somebody with these of celegraph's permissions."""
    user = User.objects.create_user(name or uuid.uuid4().hex[:8], is_staff=staff, is_superuser=superuser)
    for codename in permissions:
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label="celegraph", codename=codename)
        )
    return user


def logged_in(user: User) -> Client:
    """A browser of this person's."""
    client = Client(headers={"accept": "text/html"})
    client.force_login(user)
    return client
