"""Rows of the database: bytes with a checksum, sealed where the bucket asks for it.

The checksum covers the bytes as stored and the place they belong to, so that a damaged value is noticed
without the key and never handed out as an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from sys import intern
from typing import TypeAlias, cast
from zlib import crc32

from homeport.store.cipher import Cipher
from homeport.store.error import SealBroken, StoreDamaged, WrongKey
from homeport.store.record import Change, Record

ObjectRow: TypeAlias = tuple[int, int, str, str, int, int, bytes]
LogRow: TypeAlias = tuple[int, str, str, int, int, int, int, int, bytes | None, bytes | None]

_PROBE = b"homeport"
_PROBE_PLACE = b"the key of this database"


def object_checksum(revision: int, bucket: str, name: str, stored: bytes) -> int:
    return crc32(stored, crc32(f"{bucket}/{name}@{revision}".encode()))


def log_checksum(revision: int, bucket: str, name: str, value: bytes | None, final: bytes | None) -> int:
    place = f"{bucket}/{name}@{revision}:{-1 if value is None else len(value)}".encode()
    return crc32(final or b"", crc32(value or b"", crc32(place)))


class Codec:
    """Turns records and changes into rows and back."""

    def __init__(self, path: Path, cipher: Cipher | None, sealed: frozenset[str]) -> None:
        if sealed and cipher is None:
            raise ValueError(f"buckets to seal ({', '.join(sorted(sealed))}) need a cipher")
        self._path = path
        self._cipher = cipher
        self._sealed = sealed

    def object_row(self, record: Record) -> ObjectRow:
        bucket, name, revision = record.bucket, record.name, record.revision
        sealed = bucket in self._sealed
        value = self._seal(record.value, bucket, name) if sealed else record.value
        checksum = object_checksum(revision, bucket, name, value)
        return (record.created, revision, bucket, name, int(sealed), checksum, value)

    def log_row(self, change: Change, committed_at: int) -> LogRow:
        bucket, name, previous, final = change.bucket, change.name, change.previous, change.value
        value = None if previous is None else previous.value
        sealed = bucket in self._sealed
        if sealed:
            value = None if value is None else self._seal(value, bucket, name)
            final = None if final is None else self._seal(final, bucket, name)
        before, created = (0, 0) if previous is None else (previous.revision, previous.created)
        checksum = log_checksum(change.revision, bucket, name, value, final)
        return (change.revision, bucket, name, created, before, committed_at, int(sealed), checksum, value, final)

    def record(self, row: ObjectRow) -> Record:
        created, revision, bucket, name, sealed, checksum, value = row
        if object_checksum(revision, bucket, name, value) != checksum:
            raise StoreDamaged(self._path, f"the bytes of {bucket} {name!r} are damaged")
        if sealed:
            value = self._open(value, bucket, name)
        return Record(intern(bucket), name, value, created, revision)

    def change(self, row: LogRow, record: Record | None) -> Change:
        """The change of a log row, given the state after it."""
        revision, bucket, name, created, before, _, sealed, checksum, value, final = row
        if log_checksum(revision, bucket, name, value, final) != checksum:
            raise StoreDamaged(self._path, f"the history of {bucket} {name!r} is damaged")
        found = 0 if record is None else record.revision
        if found != (revision if final is None else 0):
            raise StoreDamaged(self._path, f"the history of {bucket} {name!r} does not fit the object")
        if sealed:
            value = None if value is None else self._open(value, bucket, name)
            final = None if final is None else self._open(final, bucket, name)
        bucket = intern(bucket)
        previous = None if value is None else Record(bucket, name, value, created, before)
        return Change(revision, bucket, name, record, previous, final)

    def probe(self) -> bytes | None:
        """Something only this key opens, to be kept in the database."""
        return None if self._cipher is None else self._cipher.seal(_PROBE, _PROBE_PLACE)

    def check_probe(self, probe: bytes) -> None:
        if self._cipher is None:
            return
        try:
            self._cipher.open(probe, _PROBE_PLACE)
        except SealBroken as error:
            raise WrongKey(self._path, "it is encrypted with another key") from error

    def _seal(self, value: bytes, bucket: str, name: str) -> bytes:
        return cast(Cipher, self._cipher).seal(value, f"{bucket}/{name}".encode())

    def _open(self, value: bytes, bucket: str, name: str) -> bytes:
        if self._cipher is None:
            raise WrongKey(self._path, f"{bucket} {name!r} is encrypted, and the key is missing")
        try:
            return self._cipher.open(value, f"{bucket}/{name}".encode())
        except SealBroken as error:
            raise WrongKey(self._path, f"{bucket} {name!r} does not open with this key") from error


def object_rows(codec: Codec, changes: list[Change]) -> Mapping[int, ObjectRow | None]:
    """What the changes leave behind: rows by creation revision, None for those to delete."""
    last: dict[int, Record | None] = {}
    for change in changes:
        if change.record is not None:
            last[change.record.created] = change.record
        elif change.previous is not None:
            last[change.previous.created] = None
    return {created: None if record is None else codec.object_row(record) for created, record in last.items()}
