"""The command line: look at runs, answer questions, put things right.  `main` is the entry point."""

from __future__ import annotations

from celegraph.cli.group import main as main
