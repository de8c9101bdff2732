"""MachineRequest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from homeport.api.butler.v1alpha1 import MachineRequest
from homeport.api.butler.v1alpha1.machine import MachineResources
from homeport.api.butler.v1alpha1.part import ExtraDisk, ProviderRef, SecretRef
from homeport.platforms.butler.normal.outcome import Normal, Reading
from homeport.platforms.butler.normal.sizes import (
    WORKER_CPU,
    WORKER_DISK,
    WORKER_MEMORY,
    check_extra_disks,
    disk_gib,
    either_amount,
    from_gib,
    from_mib,
    memory_mib,
)

CONTROL_PLANE, WORKER = "control-plane", "worker"


@dataclass(frozen=True, slots=True)
class MachineModel:
    provider: ProviderRef
    name: str
    role: str  # control-plane or worker
    cpu: int
    memory_mib: int
    disk_gib: int
    extra_disks: tuple[ExtraDisk, ...] = ()
    image: str = ""  # '': the one of the ProviderConfig
    user_data: str = ""
    user_data_secret: SecretRef | None = None
    network_data: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    paused: bool = False


def normal_machine_request(request: MachineRequest) -> Normal[MachineModel]:
    reading, spec = Reading(), request.spec
    provider = read_provider_ref(reading, request.metadata.namespace, spec.provider_ref, spec.provider_config_ref)
    if spec.user_data and spec.user_data_secret_ref is not None:
        reading.fault("spec.userDataSecretRef", "set only one of userData and userDataSecretRef")
    size = spec.resources or MachineResources()
    cpu = reading.either(("spec.cpu", spec.cpu), ("spec.resources.cpu", size.cpu)) or WORKER_CPU
    memory = either_amount(reading, ("spec.memoryMB", from_mib(spec.memory_mb)), ("spec.resources.memory", size.memory))
    disk = either_amount(reading, ("spec.diskGB", from_gib(spec.disk_gb)), ("spec.resources.disk", size.disk))
    memory_at = memory_mib(
        reading, "spec.memoryMB" if spec.memory_mb else "spec.resources.memory", memory or WORKER_MEMORY
    )
    disk_at = disk_gib(reading, "spec.diskGB" if spec.disk_gb else "spec.resources.disk", disk or WORKER_DISK)
    check_extra_disks(reading, "spec.extraDisks", spec.extra_disks)
    return reading.result(
        lambda: MachineModel(
            provider=provider or ProviderRef(),
            name=spec.machine_name,
            role=CONTROL_PLANE if spec.role == "controlplane" else spec.role,
            cpu=cpu,
            memory_mib=memory_at,
            disk_gib=disk_at,
            extra_disks=tuple(spec.extra_disks),
            image=spec.image,
            user_data=spec.user_data,
            user_data_secret=spec.user_data_secret_ref,
            network_data=spec.network_data,
            labels=dict(spec.labels),
            paused=spec.paused,
        )
    )


def read_provider_ref(
    reading: Reading, namespace: str, ref: ProviderRef | None, other: ProviderRef | None, *, required: bool = True
) -> ProviderRef | None:
    """Both spellings. Without a namespace the look-up decides, so equal names are equal references."""
    found = reading.either(
        ("spec.providerRef", ref),
        ("spec.providerConfigRef", other),
        same=lambda each: (each.namespace or namespace, each.name),
    )
    if found is None and required:
        reading.missing("spec.providerRef", "name the ProviderConfig that the machines run on")
    return found
