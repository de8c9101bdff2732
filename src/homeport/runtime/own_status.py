"""Statuses that a controller wrote itself, as the last thing of a loop: they are no reason to look again."""

from __future__ import annotations

from collections.abc import Container

from homeport.api.meta import Object, Unstructured
from homeport.client.protocol import Key
from homeport.runtime.cache import key_of, version_of
from homeport.runtime.wake import only_status_changed


class OwnStatus:
    def __init__(self) -> None:
        self._reported: dict[Key, int] = {}  # the revision at which a key's last loop ended by writing its status
        self._undecided: dict[Key, list[int]] = {}  # changes of statuses of keys in work: ours, or somebody else's

    def covers(
        self, old: Object | Unstructured | None, new: Object | Unstructured | None, busy: Container[Key]
    ) -> bool:
        """Whether only the status changed, and this controller wrote it. For `busy` keys, this is decided later."""
        found = new if new is not None else old
        if found is None:
            return False
        key = key_of(found)
        if (
            not isinstance(old, Object)
            or not isinstance(new, Object)
            or not only_status_changed(old.metadata, new.metadata)
        ):
            self._reported.pop(key, None)
            return False
        if key in busy:
            self._undecided.setdefault(key, []).append(version_of(new))
            return True
        return self._reported.get(key) == version_of(new)

    def decide(self, key: Key, own: int) -> bool:
        """The loop has ended by writing the status at the revision `own` (0: it did not). True: another writer changed
        the status meanwhile, so the key must be looked at again."""
        if own:
            self._reported[key] = own
        else:
            self._reported.pop(key, None)
        return any(revision != own for revision in self._undecided.pop(key, ()))
