"""The page on testing is true: its files are written out and its tests run, by a host's pytest."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def test_the_examples_of_the_page_pass(tmp_path: Path, celegraph_database_url: str) -> None:
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for name, text in blocks:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "celegraph.testing"],
        env={
            "PYTHONPATH": ":".join([str(tmp_path), *filter(None, sys.path)]),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "CELEGRAPH_TEST_DATABASE_URL": celegraph_database_url,
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert "3 passed" in done.stdout, done.stdout + done.stderr
