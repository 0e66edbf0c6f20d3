"""`python -m celegraph.cli.demo`."""

from celegraph.cli.demo import demo

demo()
