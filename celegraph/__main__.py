"""`python -m celegraph`: the command line where its script is not on the PATH."""

from __future__ import annotations

from celegraph.cli import main

main(prog_name="celegraph")
