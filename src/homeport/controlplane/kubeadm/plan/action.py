"""What a plan consists of."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.controlplane.kubeadm.observe.state import Remediation


@dataclass(frozen=True, slots=True)
class Create:
    """One more control plane Machine. `first`: it initialises the cluster."""

    domain: str = ""
    first: bool = False
    rollout: bool = False
    remediation: Remediation | None = None


@dataclass(frozen=True, slots=True)
class _OfMachine:
    machine: str


@dataclass(frozen=True, slots=True)
class Delete(_OfMachine):
    """One Machine fewer; its leadership of etcd is handed over first."""

    rollout: bool = False


@dataclass(frozen=True, slots=True)
class Remediate(_OfMachine):
    """An unhealthy Machine is deleted; the next Machine replaces it."""

    remediation: Remediation
    recorded: bool = False  # it was announced already, and not deleted


@dataclass(frozen=True, slots=True)
class Defer(_OfMachine):
    """An unhealthy Machine is not replaced now, or never."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Recover(_OfMachine):
    """A Machine that was to be replaced is healthy again."""


@dataclass(frozen=True, slots=True)
class ForgetRemediation:
    """The remediation in progress is over."""


@dataclass(frozen=True, slots=True)
class RemoveMember:
    """A member of etcd without a Machine."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class ReleaseHook(_OfMachine):
    """A Machine that is being deleted may go, after its member of etcd (0: it has none)."""

    member: int = 0


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing can be done now, and why. `kinds` are what it waits for."""

    reason: str
    message: str
    kinds: frozenset[str] = frozenset()


Action = Create | Delete | Remediate | Defer | Recover | ForgetRemediation | RemoveMember | ReleaseHook | Hold
