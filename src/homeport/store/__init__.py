"""Revisioned objects in SQLite: bytes and revisions, nothing about Kubernetes.

Objects live in buckets under a name. Every change gets the next revision of one global counter, is made
durable by a group commit, and is then told to watchers in order. Everything current is in memory, so
reads never wait; history is kept, in bounds, for watches that resume and for snapshots of the past.
"""

from __future__ import annotations

from homeport.store.backup import Restored, restore, verify
from homeport.store.cipher import AesGcm, Cipher
from homeport.store.error import (
    Compacted,
    FutureRevision,
    Lagged,
    Mismatch,
    Missing,
    SealBroken,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreTooNew,
    StoreUnavailable,
    WrongKey,
)
from homeport.store.record import Change, History, Record
from homeport.store.stats import Histogram, Stats
from homeport.store.store import Store
from homeport.store.watch import Watch

__all__ = [
    "AesGcm",
    "Change",
    "Cipher",
    "Compacted",
    "FutureRevision",
    "Histogram",
    "History",
    "Lagged",
    "Mismatch",
    "Missing",
    "Record",
    "Restored",
    "SealBroken",
    "Stats",
    "Store",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreTooNew",
    "StoreUnavailable",
    "Watch",
    "WrongKey",
    "restore",
    "verify",
]
