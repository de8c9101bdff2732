"""What a running plane tells about itself, as data."""

from __future__ import annotations

import msgspec


class PartState(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    state: str
    crashes: int = 0
    error: str = ""
    retry_in: float = 0.0


class Unfinished(msgspec.Struct, frozen=True, rename="camel"):
    """An object that is not what it should be yet, and why."""

    object: str
    reason: str
    message: str = ""


class ControllerState(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    queue: int  # keys that are ready to be worked on
    delayed: int  # keys that come back later
    held: int  # keys whose last write is not in the caches yet
    reconciles: int
    errors: int
    unfinished_count: int
    unfinished: list[Unfinished]


class SimulatorState(msgspec.Struct, frozen=True, rename="camel"):
    """A simulated infrastructure, and how to get at it."""

    name: str
    url: str
    port: int  # whatever host is dialled at this port by the proxy, it answers
    authority: str  # file of the certificate that clients have to trust
    user: str
    password: str
    admin: str
    proxy: str
    requests: int
    machines: int
    running: int
    clusters: int


class Description(msgspec.Struct, frozen=True, rename="camel"):
    revision: int  # of the store; 0 on a cluster of others
    objects: dict[str, int]
    requests: int  # answered since the start; 0 on a cluster of others
    parts: list[PartState]
    controllers: list[ControllerState]
    blind: dict[str, str]  # kinds that can't be followed, and why
    simulators: list[SimulatorState] = []
