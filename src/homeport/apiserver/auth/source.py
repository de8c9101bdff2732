"""How authentication and authorization read the store: objects by name, and every change of a bucket.

Names in the store are `namespace/name`, or `name` for cluster-wide kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from homeport.store import Change, Store

Json = dict[str, Any]


def read(store: Store, bucket: str, namespace: str, name: str) -> Json | None:
    record = store.get(bucket, f"{namespace}/{name}" if namespace else name)
    if record is None:
        return None
    found: Json = orjson.loads(record.value)
    return found


def follow(
    store: Store, bucket: str, put: Callable[[str, Json], None], drop: Callable[[str], None]
) -> Callable[[], None]:
    """Tells about every object of a bucket, now and whenever it changes. Returns the way to stop."""

    def take(changes: list[Change]) -> None:
        for change in changes:
            if change.record is None:
                drop(change.name)
            else:
                put(change.name, orjson.loads(change.record.value))

    stop = store.subscribe(bucket, take)
    for record in store.range(bucket):
        put(record.name, orjson.loads(record.value))
    return stop
