"""What a plan consists of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Create:
    """One more control plane Machine. `first`: it initializes the cluster."""

    domain: str = ""
    first: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    machine: str
    why: str
    remediation: bool = False


@dataclass(frozen=True, slots=True)
class Leave:
    """The member of a Machine that is being deleted is asked to leave etcd."""

    machine: str
    member: str


@dataclass(frozen=True, slots=True)
class Release:
    """A Machine that is being deleted may go: it has no member of etcd."""

    machine: str


@dataclass(frozen=True, slots=True)
class Upgrade:
    """k0s upgrades these controllers in place. `replace`: the plan that exists is given up first."""

    targets: tuple[str, ...]
    replace: bool = False


@dataclass(frozen=True, slots=True)
class Defer:
    """An unhealthy Machine is not replaced now."""

    machine: str
    message: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing can be done now, and why."""

    reason: str
    message: str


Action = Create | Delete | Leave | Release | Upgrade | Defer | Hold
