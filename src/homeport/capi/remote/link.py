"""The way to one workload cluster: how it is, and what is known of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from homeport.capi.remote.workload import Remote

AGES = (50.0, 300.0)  # seconds without a successful probe after which followers are notified


@dataclass(slots=True)
class Link:
    """What we know about the way to one cluster."""

    remote: Remote
    connected: bool = False
    why: str = "connecting to the workload cluster"
    failures: int = 0  # of attempts or probes, in a row
    began: float | None = None  # when the first attempt was made, by the wall clock
    last_probe: float | None = None  # the last successful one, by the wall clock ...
    probed_at: float = 0.0  # ... and by the one that never jumps; at first, when it began
    secret_version: str = ""
    digest: bytes = b""  # of the kubeconfig in use
    ages: list[float] = field(default_factory=list)  # thresholds that are still to come
    timer: asyncio.TimerHandle | None = None


def worded(error: Exception) -> str:
    """Why a cluster could not be reached."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__
