"""A k0smotron Cluster to render."""

from __future__ import annotations

from typing import Any

import msgspec

from homeport.api.k0smotron.v1beta2 import ClusterSpec
from homeport.hosted.k0smotron.pod.subject import Subject

OWNER = {"apiVersion": "k0smotron.io/v1beta2", "kind": "Cluster", "name": "edge", "uid": "u-1", "controller": True}


def subject(*, name: str = "edge", annotations: dict[str, str] | None = None, **spec: Any) -> Subject:
    """`spec` as a user writes it."""
    typed = msgspec.convert({"version": "v1.34.1+k0s.0", **spec}, ClusterSpec)
    return Subject(name, "tenants", typed, OWNER, {"team": "a"}, annotations or {})
