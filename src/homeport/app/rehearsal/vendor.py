"""Stands in for every vendor: machines exist as soon as they are asked for, and nothing leaves the process."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from homeport.capi.cloud import Address, Sources
from homeport.infra.machine.location import Location, location_of
from homeport.infra.protocol import (
    Check,
    ClusterDriver,
    ClusterScope,
    FailureDomain,
    Instance,
    MachineScope,
    Owned,
    Provider,
)
from homeport.runtime.outcome import Wait

_BOOT_SECONDS = 60.0
PASSED = "PreflightPassed"


@dataclass(frozen=True, slots=True)
class StandInSession:
    location: Location = field(default_factory=Location)

    async def close(self) -> None: ...


def stand_in(provider: Provider[Any, Any, Any]) -> Provider[Any, Any, Any]:
    """The same provider without its vendor."""
    return replace(
        provider,
        cluster_driver=_Clusters(),
        machine_driver=_Machines(provider.name),
        connector=_Connector(provider.connector),
        preflight=_NoPreflight(),
        location=lambda session: session.location,
    )


def checked(provider: Provider[Any, Any, Any]) -> Provider[Any, Any, Any]:
    """The provider as far as it only reads: its connection and its preflight. It creates and deletes nothing."""
    return replace(provider, cluster_driver=_Checked(provider.cluster_driver), machine_driver=_Machines(provider.name))


class _Connector:
    def __init__(self, real: Any) -> None:
        self._real = real

    def sources(self, infra: Any) -> Sources:
        found: Sources = self._real.sources(infra)
        return found

    async def connect(self, infra: Any) -> StandInSession:
        return StandInSession()

    async def connect_machine(self, infra: Any, cluster: Any) -> StandInSession:
        """Machines stay where they were found to be."""
        return StandInSession(location_of(infra))

    async def open(self, settings: Mapping[str, Any], secret: Mapping[str, str]) -> StandInSession:
        return StandInSession()

    async def close(self) -> None: ...


class _NoPreflight:
    """The real provider's results are shown beside the rehearsal."""

    async def check_references(self, session: Any, plans: Sequence[Any], namespace: str) -> Sequence[Check]:
        return ()

    async def check_capacity(self, session: Any, plans: Sequence[Any]) -> Sequence[Check]:
        return ()


class _Clusters(ClusterDriver[Any, Any]):
    async def converge(self, scope: ClusterScope[Any, Any]) -> Wait | None:
        return None

    async def failure_domains(self, scope: ClusterScope[Any, Any]) -> Sequence[FailureDomain]:
        """Those that the object has."""
        held = getattr(scope.infra.status, "failure_domains", None) or {}
        if isinstance(held, Mapping):
            return [_domain(name, found) for name, found in held.items()]
        return [_domain(_field(found, "name"), found) for found in held]

    async def release(self, scope: ClusterScope[Any, Any]) -> Wait | None:
        return None

    async def list_owned(self, scope: ClusterScope[Any, Any]) -> Sequence[Owned]:
        return ()

    async def remove(self, scope: ClusterScope[Any, Any], owned: Owned) -> None: ...


class _Checked(_Clusters):
    def __init__(self, real: ClusterDriver[Any, Any]) -> None:
        self._real = real

    async def preflight(self, scope: ClusterScope[Any, Any]) -> Sequence[Check]:
        return await self._real.preflight(scope)

    async def converge(self, scope: ClusterScope[Any, Any]) -> Wait | None:
        """Everything was checked."""
        return Wait(PASSED, "all checks have passed", quiet=True)


def _domain(name: str, found: Any) -> FailureDomain:
    control_plane = _field(found, "control_plane", "controlPlane")
    return FailureDomain(str(name), bool(control_plane), dict(_field(found, "attributes") or {}))


def _field(found: Any, *names: str) -> Any:
    values = (found.get(n) if isinstance(found, Mapping) else getattr(found, n, None) for n in names)
    return next((value for value in values if value is not None), None)


class _Machines:
    """Machines that ran before the rehearsal are those whose object has a providerID."""

    def __init__(self, provider: str) -> None:
        self._scheme = provider
        self._made: dict[str, Instance] = {}  # by the UID of the object
        self._gone: set[str] = set()

    async def observe(self, scope: MachineScope[Any, Any, Any]) -> Instance | None:
        if scope.uid in self._gone:
            return None
        known = scope.infra.spec.provider_id
        if scope.uid not in self._made and known:
            addresses = tuple(Address(each.type, each.address) for each in scope.infra.status.addresses)
            self._made[scope.uid] = self._instance(scope, known, addresses)
        return self._made.get(scope.uid)

    async def converge(self, scope: MachineScope[Any, Any, Any], instance: Instance | None) -> Wait | None:
        if instance is not None:
            return None
        number = len(self._made) + 1
        address = Address("InternalIP", f"198.18.{number // 250}.{number % 250 + 1}")
        provider_id = f"{self._scheme}://{uuid.uuid5(uuid.NAMESPACE_OID, scope.uid)}"
        self._made[scope.uid] = self._instance(scope, provider_id, (address,))
        return Wait("CreatingVM", "the machine is being created", after=_BOOT_SECONDS)

    async def release(self, scope: MachineScope[Any, Any, Any], instance: Instance | None) -> Wait | None:
        if instance is None:
            return None
        self._gone.add(scope.uid)
        return Wait("Deleting", "the machine is being deleted", after=1.0)

    async def quiesce(self, scope: MachineScope[Any, Any, Any]) -> Wait | None:
        return None

    def stop_watching(self, uid: str) -> None: ...

    def forget(self, uid: str) -> None: ...

    def _instance(
        self, scope: MachineScope[Any, Any, Any], provider_id: str, addresses: tuple[Address, ...]
    ) -> Instance:
        return Instance(
            id=provider_id.rpartition("/")[2],
            provider_id=provider_id,
            name=scope.name,
            power="on",
            addresses=addresses,
            failure_domain=str(getattr(scope.infra.status, "failure_domain", None) or scope.failure_domain or ""),
            uid=scope.uid,
        )
