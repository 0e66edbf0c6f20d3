"""Directories in /var/tmp have names that anybody can guess."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from celegraph.dev.account import own_directory
from celegraph.dev.errors import LocalServersError
from celegraph.dev.home import private_file


def test_a_directory_is_made_once_and_taken_again(tmp_path: Path) -> None:
    made = own_directory(tmp_path / "place", 0o711)

    assert own_directory(tmp_path / "place", 0o711) == made
    assert stat.S_IMODE(made.stat().st_mode) == 0o711


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "place").symlink_to(tmp_path)

    with pytest.raises(LocalServersError, match="not a directory of ours alone; remove it"):
        own_directory(tmp_path / "place", 0o711)


def test_a_directory_that_others_may_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place").chmod(0o777)

    with pytest.raises(LocalServersError, match="not a directory of ours alone; remove it"):
        own_directory(tmp_path / "place", 0o711)


def test_a_secret_is_never_written_into_an_existing_file(tmp_path: Path) -> None:
    readable = tmp_path / "readable"
    readable.touch()
    (tmp_path / "secret").symlink_to(readable)

    private_file(tmp_path / "secret", "password", None)

    assert readable.read_text() == ""
    assert stat.S_IMODE((tmp_path / "secret").lstat().st_mode) == 0o600
