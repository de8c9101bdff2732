"""An object as it was when it was compared or written last: tells whether somebody changed it since."""

from __future__ import annotations

from typing import NamedTuple

from homeport.api.meta import Unstructured


class Stamp(NamedTuple):
    """Taken from the answer to a read or write, never from a watch: what a watch shows first may be changed already."""

    uid: str
    generation: int
    version: int

    def is_outdated(self, seen: Unstructured) -> bool:
        """Whether `seen` is newer, and more than its status may differ."""
        now = stamp_of(seen)
        if now.version <= self.version:
            return False  # the watch is behind, or nothing happened
        return now.uid != self.uid or not now.generation or now.generation != self.generation


def stamp_of(obj: Unstructured) -> Stamp:
    version = obj.resource_version
    return Stamp(obj.uid, int(obj.metadata.get("generation") or 0), int(version) if version.isdigit() else 0)
