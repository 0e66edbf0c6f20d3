"""The reference names every option with its default, and every public name."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

import celegraph
from celegraph import errors
from celegraph.config import Config, parse_duration
from tests.docs.blocks import REPOSITORY

PAGE = (REPOSITORY / "docs" / "reference.md").read_text(encoding="utf-8")
OPTIONS = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \| [^|]* \|$", PAGE, re.MULTILINE))


def test_every_option_is_there_with_its_default() -> None:
    known = {field.alias or name: field for name, field in Config.model_fields.items()}
    assert OPTIONS.keys() == known.keys()

    for name, field in known.items():
        default = field.get_default(call_default_factory=True)
        if isinstance(default, timedelta):
            assert parse_duration(OPTIONS[name]) == default, name
        else:
            assert OPTIONS[name] == (str(default) or "-"), name


@pytest.mark.parametrize("name", celegraph.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert re.search(rf"`[^`]*\b{name}\b[^`]*`", PAGE)


@pytest.mark.parametrize("name", re.findall(r"`([A-Z]\w+)`", PAGE.partition("## Errors")[2]))
def test_every_error_named_there_exists(name: str) -> None:
    assert issubclass(getattr(errors, name), errors.CelegraphError)
