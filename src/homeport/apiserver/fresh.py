"""What a server has before its first request, kept from the first server of this process for those that follow.

Simulated sites start a server in memory for each of a thousand clusters. All of them begin with the same forty objects,
which differ in their UIDs and times alone: those are filled in, instead of writing every object again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime

import orjson

from homeport.store import Change, Record

_UID, _TIME = b"<the UID>", b"<the time>"


class Fresh:
    """The first changes of a server in memory."""

    def __init__(self, changes: Iterable[Change]) -> None:
        self._changes = [
            (change.revision, change.bucket, change.name, _blank(change.record.value))
            for change in changes
            if change.record is not None
        ]

    def changes(self, now: float) -> list[Change]:
        """The same changes once more, of other objects: made now, with UIDs of their own."""
        time = datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ").encode()
        newest: dict[tuple[str, str], tuple[bytes, Record]] = {}
        made: list[Change] = []
        for revision, bucket, name, blank in self._changes:
            uid, previous = newest.get((bucket, name)) or (str(uuid.uuid4()).encode(), None)
            value = blank.replace(_UID, uid).replace(_TIME, time)
            record = Record(bucket, name, value, previous.created if previous else revision, revision)
            newest[bucket, name] = uid, record
            made.append(Change(revision, bucket, name, record, previous))
        return made


def _blank(value: bytes) -> bytes:
    """An object with gaps where its UID and its times were."""
    meta = orjson.loads(value)["metadata"]
    times = {meta["creationTimestamp"], *(each["time"] for each in meta.get("managedFields") or ())}
    blank = value.replace(b'"%s"' % meta["uid"].encode(), b'"%s"' % _UID)
    for time in times:
        blank = blank.replace(b'"%s"' % time.encode(), b'"%s"' % _TIME)
    return blank
