"""Objects that can't be read are not missing: nothing is created, replaced or released in their place."""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import ContractRef, Machine, MachineDeployment, MachinePool, MachineSet
from homeport.api.meta import Resource
from homeport.capi.name import TEMPLATE_SUFFIX
from homeport.capi.resolution import plural
from homeport.runtime.informers import Informers
from homeport.runtime.outcome import Wait

REASON = "UnreadableObjects"
AGAIN_SECONDS = 30.0  # the deletion of an object that was never read wakes nobody

MACHINE = Machine.__resource__
SET = MachineSet.__resource__
DEPLOYMENT = MachineDeployment.__resource__
WORKERS = (MACHINE, SET, DEPLOYMENT, MachinePool.__resource__)


def made_from(*templates: ContractRef | None) -> list[Resource]:
    """Kinds of the objects that are made from these templates."""
    kinds = [(ref.api_group, ref.kind.removesuffix(TEMPLATE_SUFFIX)) for ref in templates if ref is not None]
    return [Resource(group, "", kind, plural(kind)) for group, kind in kinds]


def await_readable(informers: Informers, namespace: str, *kinds: Resource) -> Wait | None:
    """What to wait for before acting because an object of these kinds is missing in the namespace."""
    text = informers.unreadable(namespace, *kinds)
    return Wait(REASON, text, after=AGAIN_SECONDS, warning=True) if text else None
