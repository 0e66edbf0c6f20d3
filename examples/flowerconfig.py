"""Flower's settings: `celery -A ... flower --conf=examples/flowerconfig.py`, with FLOWER_BASIC_AUTH set."""

from celegraph.contrib.flower import *  # noqa: F403 - Flower reads the names it knows out of this file
