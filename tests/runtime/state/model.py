"""A versioned store as flat and slow as can be: a dictionary a key, nothing is ever dropped. Shares no code with it."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

INFINITE = 2**63 - 1


Key = TypeVar("Key")
Row = TypeVar("Row")
Outcome = Literal["latest", "superseded", "expired"]


class Model(Generic[Key, Row]):
    """The contract, spelled out on plain dictionaries. Answers are plain tuples and words."""

    def __init__(self, retention: int, grace: int) -> None:
        self.retention = retention
        self.grace = grace
        self.time = -1
        self.rows: dict[Key, dict[int, Row | None]] = {}

    @property
    def horizon(self) -> int:
        return self.time - max(self.retention, self.grace)

    def put(self, key: Key, value: Row | None, timestamp: int) -> tuple[Outcome, int | None]:
        if timestamp < self.time - self.grace:
            return "expired", None
        self.time = max(self.time, timestamp)
        mine = self.rows.setdefault(key, {})
        mine[timestamp] = value
        later = [t for t in mine if t > timestamp]
        return ("superseded", min(later)) if later else ("latest", None)

    def delete(self, key: Key, timestamp: int) -> tuple[Row, int, int | None] | None:
        if timestamp < self.time - self.grace:
            return None
        before = self.lookup(key, timestamp)
        self.put(key, None, timestamp)
        return None if isinstance(before, str) else before

    def lookup(self, key: Key, as_of: int | None) -> tuple[Row, int, int | None] | str:
        history = self.history(key)
        if not history:
            too_old = as_of is not None and as_of < self.time - self.retention
            return "older_than_retention" if too_old else "no_record"
        newest_from = history[-1][0]
        if as_of is not None and newest_from > as_of and as_of < self.time - self.retention:
            return "older_than_retention"
        for start, end, value in history:
            if (as_of is None and end is None) or (
                as_of is not None and start <= as_of and (end is None or as_of < end)
            ):
                if value is None:
                    return "no_record" if start < self.horizon else "tombstone"
                return value, start, end
        return "no_record"

    def history(self, key: Key) -> list[tuple[int, int | None, Row | None]]:
        """All versions, oldest first; nothing if the newest is a tombstone that is forgotten."""
        times = sorted(self.rows.get(key, {}))
        ends: list[int | None] = [*times[1:], None] if times else []
        found = [(start, end, self.rows[key][start]) for start, end in zip(times, ends, strict=True)]
        if found and found[-1][2] is None and found[-1][0] < self.horizon:
            return []
        return found

    def versions(self, key: Key, start: int | None, end: int | None) -> list[tuple[Row, int, int | None]]:
        """Newest first."""
        low = max(-1 if start is None else start, self.time - self.retention)
        high = INFINITE if end is None else end
        found = []
        for begin, until, value in self.history(key):
            inside = low <= high and begin <= high and (until is None or until > low)
            if value is not None and (inside or (until is None and begin <= high)):
                found.append((value, begin, until))
        return found[::-1]

    def known(self, key: Key, start: int, end: int) -> list[tuple[int, int, Row | None]]:
        """What `versions_many` gives of a key: (valid from, valid to, value), oldest first."""
        found = []
        for begin, until, value in self.history(key):
            inside = start <= end and begin <= end and (until is None or (until > start and until > self.horizon))
            remembered = value is not None or begin >= self.horizon
            if (inside or until is None) and remembered:
                found.append((begin, INFINITE if until is None else until, value))
        return found
