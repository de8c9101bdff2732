"""What is there, without what differs from run to run: names that were drawn, times, keys and addresses."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from capikit.harness import Harness

_PASSING = ("events", "leases.coordination.k8s.io", "customresourcedefinitions.apiextensions.k8s.io")
_PARTS = ("cluster.x-k8s.io", "example.com")
_DRAWN = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ADDRESS = re.compile(r"\b10\.(1[6-9]|2\d|9[6-9])\.\d+\.\d+\b")
_NUMBERS = ("resourceVersion", "generation", "observedGeneration", "managedFields")
# Read from each API server when there is time for it: how far that has come depends on the moment of the look.
_EXPIRY = ("machine.cluster.x-k8s.io/certificates-expiry", "certificatesExpiryDate")
_RANDOM = ("token", "caCertHashes", "bootID", "machineID", "systemUUID")


def shape(h: Harness) -> dict[str, int]:
    """How often each object is there, written down."""
    found: Counter[str] = Counter()
    store = h.plane.server.store
    for bucket in store.buckets():
        if bucket in _PASSING or not (bucket == "secrets" or bucket.endswith(_PARTS)):
            continue
        for record in store.range(bucket):
            found[f"{bucket} {_line(json.loads(record.value))}"] += 1
    return dict(found)


def _line(obj: dict[str, Any]) -> str:
    if obj["kind"] == "Secret":
        obj["data"] = sorted(obj.get("data") or ())
        obj["metadata"].pop("annotations", None)
    text = json.dumps(_without(obj), sort_keys=True)
    for pattern, name in ((_UID, "UID"), (_DRAWN, "-RANDOM"), (_TIME, "TIME"), (_ADDRESS, "ADDRESS")):
        text = pattern.sub(name, text)
    return text


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {k: _without(v) for k, v in value.items() if k not in (*_NUMBERS, *_RANDOM, *_EXPIRY)}
        if "conditions" in kept:  # by type, whichever was set first
            kept["conditions"].sort(key=lambda each: str(each["type"]))
        return {k: v for k, v in kept.items() if not (k == "annotations" and not v)}
    if isinstance(value, list):
        return [_without(each) for each in value]
    return value


def difference(one: dict[str, int], other: dict[str, int]) -> str:
    """'' when they are the same."""
    lines = [
        f"{one.get(line, 0)} instead of {other.get(line, 0)}: {line}"
        for line in sorted({*one, *other})
        if one.get(line) != other.get(line)
    ]
    return "\n".join(lines)
