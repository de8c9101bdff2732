"""To whom objects in the infrastructure cluster belong: several planes, and users, share one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator

from homeport.api.meta import Resource, Unstructured
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.providers.harvester.infracluster.resource import (
    CLAIM,
    CLUSTER_UID,
    DATA_VOLUME,
    MACHINE_NAME,
    MACHINE_NAMESPACE,
    SECRET,
    VM,
)
from homeport.runtime.cache import labels_of

KINDS = (CLAIM, DATA_VOLUME, SECRET)
List = Callable[[Resource], Awaitable[list[Unstructured]]]
_VOLUMES = frozenset((CLAIM.kind, DATA_VOLUME.kind))


def holder_of(obj: Unstructured) -> str:
    """To be put behind "it": whose an object is whose name is wanted. Nobody is told to delete what others use."""
    labels = labels_of(obj)
    cluster = labels.get(CLUSTER_NAME_LABEL, "")
    named = f"Cluster {cluster!r}, which another plane or namespace has" if cluster else "another cluster"
    if labels.get(MACHINE_NAME):
        return f"belongs to machine {labels.get(MACHINE_NAMESPACE, '')}/{labels[MACHINE_NAME]} of {named}"
    return f"belongs to {named}" if CLUSTER_UID in labels or cluster else "has no label of a cluster"


async def left_behind(listed: List) -> list[tuple[Resource, Unstructured]]:
    """Of VMs that are gone. `listed`: the objects of a kind that carry the mark.

    A clone of a VM, as Harvester makes it, carries the same mark on itself and its volumes: what it uses stays.
    """
    found = [(kind, each) for kind in KINDS for each in await listed(kind)]
    used = set(_used(await listed(VM))) if found else set()
    return [(kind, each) for kind, each in found if (_sort(kind), each.namespace, each.name) not in used]


def _sort(kind: Resource) -> str:
    """A DataVolume and its claim have the same name."""
    return "volume" if kind.kind in _VOLUMES else kind.kind


def _used(vms: Iterable[Unstructured]) -> Iterator[tuple[str, str, str]]:
    for vm in vms:
        spec = vm.get("spec") or {}
        for template in spec.get("dataVolumeTemplates") or ():
            yield "volume", vm.namespace, str((template.get("metadata") or {}).get("name") or "")
        for volume in ((spec.get("template") or {}).get("spec") or {}).get("volumes") or ():
            yield "volume", vm.namespace, str((volume.get("persistentVolumeClaim") or {}).get("claimName") or "")
            yield "volume", vm.namespace, str((volume.get("dataVolume") or {}).get("name") or "")
            for source in ("cloudInitNoCloud", "cloudInitConfigDrive"):
                for ref in ("secretRef", "networkDataSecretRef"):
                    named = ((volume.get(source) or {}).get(ref) or {}).get("name")
                    yield SECRET.kind, vm.namespace, str(named or "")
