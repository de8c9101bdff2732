"""What replaces the world outside the API where the controllers only rehearse a change, for `homeport plan`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from homeport.capi.remote.workload import Connect


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Controllers run as always; these three stand in for what they would reach over the network."""

    connect: Connect  # to workload clusters
    etcd: Any  # in place of the Inspector, which asks the members of workload clusters' etcd
    provider: Callable[[Any], Any]  # a Provider without its vendor, made from the real one
