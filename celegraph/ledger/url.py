"""A database URL made of libpq's parameters, as frameworks keep them."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from psycopg import pq

_KNOWN = frozenset(option.keyword.decode() for option in pq.Conninfo.get_defaults())


def database_url(params: Mapping[str, object]) -> str:
    """postgresql://user:password@host:port/dbname?more; what only the driver knows is left out."""
    rest = {key: str(value) for key, value in params.items() if key in _KNOWN and value is not None}
    name = quote(rest.pop("dbname", ""), safe="")
    return f"postgresql://{_user(rest)}{_address(rest)}/{name}{_query(rest)}"


def _user(rest: dict[str, str]) -> str:
    if "user" not in rest:
        return ""
    parts = [rest.pop("user"), *([rest.pop("password")] if "password" in rest else [])]
    return ":".join(quote(part, safe="") for part in parts) + "@"


def _address(rest: dict[str, str]) -> str:
    host, port = rest.get("host", ""), rest.get("port", "")
    # The directory of a socket and a list of hosts have no place before the path.
    if not host or "/" in host or "," in host + port or host.startswith("@"):
        return ""
    del rest["host"]
    rest.pop("port", None)
    return (f"[{host}]" if ":" in host else quote(host, safe="")) + (f":{port}" if port else "")


def _query(rest: Mapping[str, str]) -> str:
    # libpq takes "+" for a plus, never for a space.
    return "?" + urlencode(sorted(rest.items()), quote_via=quote, safe="") if rest else ""
