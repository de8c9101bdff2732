"""What the store holds: records, the changes between them, and how many of those changes are kept."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

_LEAST_BYTES = 512  # smaller ones stay as they are
_RAW = -15  # deflate without a header, in a window of 32 KiB
_FAST = 1


class Record:
    """One object at one revision. Never modified after it was made, except for `memo`.

    `memo` belongs to the layer above, which caches there what it decoded from the bytes. It is not
    persisted, and the store empties it on superseded records once they are no longer recent.
    """

    __slots__ = ("_held", "bucket", "created", "memo", "name", "revision", "size")

    def __init__(self, bucket: str, name: str, value: bytes, created: int, revision: int) -> None:
        self.bucket = bucket
        self.name = name
        # One field, since the committer's thread reads it, too: the bytes, or what they are compressed to and with.
        self._held: bytes | tuple[bytes, bytes] = value
        self.size = len(value)
        self.created = created
        self.revision = revision
        self.memo: Any = None

    @property
    def value(self) -> bytes:
        held = self._held
        if type(held) is tuple:
            return zlib.decompressobj(_RAW, held[1]).decompress(held[0])
        assert type(held) is bytes
        return held

    @property
    def compressed(self) -> bool:
        return type(self._held) is tuple

    def compress(self, sample: bytes) -> None:
        """Keeps the bytes compressed from now on, if that makes them much smaller. The more `sample` looks like them,
        the smaller they get. Reading them then takes microseconds."""
        held = self._held
        if type(held) is not bytes or len(held) < _LEAST_BYTES:
            return
        work = zlib.compressobj(_FAST, zlib.DEFLATED, _RAW, zdict=sample)
        packed = work.compress(held) + work.flush()
        if len(packed) < len(held) * 3 // 4:
            self._held = packed, sample

    def __repr__(self) -> str:
        return f"<Record {self.bucket} {self.name} @{self.revision}, {self.size} bytes>"


class Change:
    """One committed step of one object: from `previous` to `record` (None: deleted).

    `value` is set for deletions only: the final bytes, as of the deletion's revision. `memo` is for the
    layer above (an encoded event, say); the store empties it once the change is no longer recent.
    """

    __slots__ = ("bucket", "memo", "name", "previous", "record", "revision", "value")

    def __init__(
        self,
        revision: int,
        bucket: str,
        name: str,
        record: Record | None,
        previous: Record | None,
        value: bytes | None = None,
    ) -> None:
        self.revision = revision
        self.bucket = bucket
        self.name = name
        self.record = record
        self.previous = previous
        self.value = value
        self.memo: Any = None

    def __repr__(self) -> str:
        step = "delete" if self.record is None else "create" if self.previous is None else "update"
        return f"<Change {step} {self.bucket} {self.name} @{self.revision}>"


@dataclass(frozen=True, slots=True)
class History:
    """How much past is kept for watches and snapshots; what exceeds any of the three is compacted.

    `bytes` counts what history alone keeps alive: superseded and deleted values, not current objects. All of it is in
    memory and in the file. Ten minutes are twice what etcd keeps for kube-apiserver; a later watch lists again.
    """

    revisions: int = 50_000
    bytes: int = 32 * 1024 * 1024
    seconds: float = 600.0
