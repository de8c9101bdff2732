"""Volumes and Secrets that were made for machines, and are deleted after their VMs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator

from homeport.api.meta import Resource, Unstructured
from homeport.providers.harvester.resource import CLAIM, DATA_VOLUME, SECRET, VM

KINDS = (CLAIM, DATA_VOLUME, SECRET)
List = Callable[[Resource], Awaitable[list[Unstructured]]]
_VOLUMES = frozenset((CLAIM.kind, DATA_VOLUME.kind))


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
