"""Which fault strikes when: decided by the seed alone, before anything is started."""

from __future__ import annotations

import random
from dataclasses import dataclass

# Seconds from one fault to the next; each lasts for seconds, so they overlap.
_EVERY = (0.3, 1.6)
# A deck of faults is dealt to its end before it is shuffled anew: a minute has seen nearly all of them.
# Each name is a method of `faults.Faults`; how often it lies in the deck, and how long it lasts.
DECK: dict[str, tuple[int, tuple[float, float]]] = {
    "kill_child": (4, (0.0, 0.0)),
    "kill_main": (2, (0.0, 2.0)),
    "kill_group": (2, (0.0, 2.0)),
    "term_long": (1, (20.0, 20.0)),
    "term_short": (1, (0.2, 1.5)),
    "stop_child": (3, (1.0, 9.0)),
    "stop_main": (1, (1.0, 9.0)),
    "stop_both": (2, (1.0, 9.0)),
    "freeze_control": (1, (1.0, 9.0)),
    "kill_control": (1, (0.0, 3.0)),
    "beat_killed": (1, (1.0, 5.0)),
    "second_beat": (1, (5.0, 15.0)),
    "broker_restarts": (1, (0.0, 2.0)),
    "broker_emptied": (2, (0.0, 0.0)),
    "broker_frozen": (1, (1.0, 6.0)),
    "broker_clients_killed": (2, (0.0, 0.0)),
    "backends_ended": (5, (0.0, 0.0)),
    "database_crashes": (1, (0.0, 1.0)),
    "connections_refused": (1, (0.5, 3.0)),
    "provider_hangs": (2, (0.0, 0.0)),
    "provider_resets": (2, (0.0, 0.0)),
    "provider_refuses": (1, (0.5, 4.0)),
    "provider_busy": (1, (1.0, 4.0)),
    "provider_slow": (1, (1.0, 6.0)),
    "provider_errs": (2, (0.0, 0.0)),
    "doorbells_doubled": (3, (0.0, 0.0)),
    "doorbells_late": (1, (1.0, 10.0)),
    "decisions_race": (3, (0.0, 0.0)),
    "run_cancelled": (1, (0.0, 0.0)),
    "run_paused": (2, (0.5, 6.0)),
}


@dataclass(frozen=True)
class Fault:
    """At `at` seconds `name` strikes and lasts `lasts`; `chance` seeds its choice among what is there."""

    at: float
    name: str
    lasts: float
    chance: int


def plan(seed: int, seconds: float) -> list[Fault]:
    """The same for the same seed; a longer one begins like a shorter one."""
    chance = random.Random(seed)
    deck: list[str] = []
    faults: list[Fault] = []
    at = 2.0
    while True:
        at += chance.uniform(*_EVERY)
        if at >= seconds:
            return faults
        if not deck:
            deck = [name for name, (copies, _) in DECK.items() for _ in range(copies)]
            chance.shuffle(deck)
        name = deck.pop()
        faults.append(Fault(at, name, chance.uniform(*DECK[name][1]), chance.getrandbits(32)))
