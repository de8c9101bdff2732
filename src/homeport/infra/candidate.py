"""VMs that Homeport did not create, and that may become its Machines: what an import asks of a provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from homeport.api.meta import Resource
from homeport.client.protocol import Key
from homeport.infra.protocol import Power

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A VM as the vendor shows it. `spec` is that of an InfraMachine which would make a VM like this one."""

    id: str
    name: str
    provider_id: str
    power: Power
    addresses: tuple[str, ...] = ()
    system_uuids: tuple[str, ...] = ()  # lower case: what the guest reads from its firmware
    machine_uid: str = ""  # our mark: the UID of an InfraMachine
    holder: str = ""  # who else manages it, to be put behind "it"; '': nobody does
    spec: Mapping[str, Any] = field(default_factory=dict)
    size: str = ""  # for people
    missing: tuple[str, ...] = ()  # fields of `spec` that the vendor does not show
    vendor: Any = None  # the vendor's own record


@dataclass(frozen=True, slots=True)
class Mark:
    """Whose a VM becomes."""

    machine: Key
    machine_uid: str
    cluster: str
    cluster_uid: str


class Importer(Protocol):
    """Reads a vendor's VMs, and marks them. All methods raise ProviderError."""

    vendor: str  # for messages
    cluster_kind: Resource
    machine_kind: Resource
    template_kind: Resource

    async def candidates(self) -> Sequence[Candidate]:
        """All VMs that the account sees."""

    def with_image(self, spec: Mapping[str, Any], image: str) -> Json:
        """The spec of a machine with another image."""

    async def mark(self, candidate: Candidate, mark: Mark) -> None:
        """Returns when the vendor shows the mark. Changes nothing else. Raises Taken if another mark appeared."""

    async def unmark(self, vm_id: str, mark: Mark) -> bool:
        """Removes this very mark. False: the VM is gone, or carries another one."""

    async def forget(self, cluster: str) -> None:
        """Removes what is left of a cluster besides its VMs, unless somebody else uses it."""

    async def close(self) -> None: ...
