"""Changes that a key's own loop made: whoever goes on with what it wrote learns nothing from the event of it."""

from __future__ import annotations

from collections.abc import Container

from homeport.client.protocol import Key
from homeport.runtime.own_write import Revision, Writes
from homeport.runtime.queue import Priority


class Echoes:
    """Only writes of a state that the loop knew: no change of somebody else can hide behind their revision."""

    def __init__(self) -> None:
        self._own: dict[Key, frozenset[Revision]] = {}  # what the last loop of a key wrote
        # Changes during a loop, its own or somebody else's, and how urgent they are.
        self._undecided: dict[Key, list[tuple[Revision, Priority]]] = {}

    def covers(self, key: Key, change: Revision, priority: Priority, busy: Container[Key]) -> bool:
        """Whether the key's own loop wrote this. For `busy` keys, this is decided when the loop ends."""
        if key in busy:
            self._undecided.setdefault(key, []).append((change, priority))
            return True
        return change in self._own.get(key, ())

    def decide(self, key: Key, writes: Writes, *, finished: bool) -> Priority | None:
        """The loop has ended. How urgently it must look again, at what changed meanwhile and it did not write; None:
        there is no such thing.

        A loop that did not get to its end has not drawn its conclusions from what it wrote. But the report of its
        failure must not wake it before the pause after a failure has passed.
        """
        own = writes.known() if finished else writes.report()
        if own:
            self._own[key] = own
        else:
            self._own.pop(key, None)
        return min((priority for change, priority in self._undecided.pop(key, ()) if change not in own), default=None)
