"""The run's effects as one attempt knows them, found by key, place, name and graph task."""

from __future__ import annotations

from collections.abc import Iterator

from celegraph.ledger.effect_row import Effect


class EffectBook:
    """Loaded once, when an attempt begins, and kept up by its own calls."""

    def __init__(self) -> None:
        self._by_key: dict[str, Effect] = {}
        self._by_place: dict[tuple[str, str], set[str]] = {}
        self._by_slot: dict[tuple[str, str, str], str] = {}
        self._intents: dict[str, set[str]] = {}

    def put(self, row: Effect) -> None:
        """Add or replace a row."""
        self._by_key[row.idempotency_key] = row
        self._by_place.setdefault((row.step, row.tool), set()).add(row.idempotency_key)
        self._by_slot[(row.step, row.tool, row.slot)] = row.idempotency_key
        if row.mode == "outbox" and row.task_id is not None and row.released_at is None:
            self._intents.setdefault(row.task_id, set()).add(row.idempotency_key)

    def at(self, step: str, tool: str) -> list[Effect]:
        """The calls of one tool in one logical step."""
        return [self._by_key[key] for key in self._by_place.get((step, tool), ())]

    def named(self, step: str, tool: str, name: str) -> Effect | None:
        """The call in an author's own slot."""
        key = self._by_slot.get((step, tool, f"={name}"))
        return None if key is None else self._by_key[key]

    def unreleased(self, task_id: str) -> list[Effect]:
        """Intents of a graph task that its writes have not released, as far as this attempt knows."""
        return [self._by_key[k] for k in self._intents.get(task_id, ())]

    def __iter__(self) -> Iterator[Effect]:
        return iter(self._by_key.values())

    def __contains__(self, key: str) -> bool:
        return key in self._by_key
