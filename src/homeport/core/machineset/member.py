"""Which Machines belong to a MachineSet: found by owner, adopted by label."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from homeport.api.cluster.v1beta2 import Machine, MachineSet
from homeport.api.meta import Object
from homeport.capi.name import CONTROL_PLANE_LABEL, GROUP
from homeport.capi.object.ownership import controller_of
from homeport.client.protocol import Key
from homeport.core.index import ensure_index
from homeport.machinery.selector import from_label_selector
from homeport.runtime.cache import Cache, key_of

O = TypeVar("O", bound=Object)

OWNER = "core.controller"  # by the uid of the controlling owner
ORPHAN = "core.orphan"  # by namespace, those that nobody controls


def _controllers(obj: Object) -> Iterable[str]:
    found = controller_of(obj)
    return (found["uid"],) if found is not None else ()


def _orphans(obj: Object) -> Iterable[str]:
    return (key_of(obj).namespace,) if controller_of(obj) is None else ()


def add_indexes(cache: Cache[O]) -> None:
    ensure_index(cache, OWNER, _controllers)
    ensure_index(cache, ORPHAN, _orphans)


def owned(cache: Cache[Machine], machine_set: MachineSet) -> list[Machine]:
    """The Machines that it controls, by name."""
    return sorted(cache.by(OWNER, machine_set.metadata.uid), key=lambda m: m.metadata.name)


def adoptable(cache: Cache[Machine], machine_set: MachineSet) -> list[Machine]:
    """Machines that nobody controls, that its selector takes, and that are not going away."""
    orphans = cache.by(ORPHAN, machine_set.metadata.namespace)
    if not orphans:
        return []
    selector = from_label_selector(machine_set.spec.selector)
    if selector.empty:
        return []
    return [
        m
        for m in orphans
        if not m.metadata.deletion_timestamp
        and CONTROL_PLANE_LABEL not in m.metadata.labels  # those wait for their control plane to adopt them
        and m.spec.cluster_name == machine_set.spec.cluster_name
        and selector.matches(m.metadata.labels)
    ]


def sets_of(sets: Cache[MachineSet]) -> Callable[[Machine], Sequence[Key]]:
    """Whom a Machine concerns: the set that controls it, or those that might adopt it."""

    def keys(machine: Machine) -> Sequence[Key]:
        found = controller_of(machine)
        if found is not None:
            same = found["kind"] == "MachineSet" and str(found["apiVersion"]).startswith(f"{GROUP}/")
            return (Key(machine.metadata.namespace, found["name"]),) if same else ()
        return [
            key_of(each)
            for each in sets.list(machine.metadata.namespace)
            if from_label_selector(each.spec.selector).matches(machine.metadata.labels)
        ]

    return keys
