"""What a Cluster is made of, as a tree to look for causes in: who depends on whom, the most important first."""

from __future__ import annotations

from collections.abc import Callable

from homeport.api.cluster.v1beta2 import ContractRef, Machine
from homeport.api.meta import Unstructured
from homeport.capi.name import DEPLOYMENT_NAME_LABEL, Condition
from homeport.capi.object.cause import Part
from homeport.core.cluster.observed import Observed
from homeport.machinery.condition import is_true

Lookup = Callable[[ContractRef], Unstructured | None]


def parts(seen: Observed, lookup: Lookup) -> list[Part]:
    """Machines that are ready are left out: nobody looks for a cause in them."""
    found = seen.descendants
    made: list[Part] = []
    if seen.infrastructure.object is not None:
        made.append(Part(seen.infrastructure.object))
    control_plane = [_machine(m, lookup) for m in found.control_plane if _open(m)]
    if seen.control_plane.object is not None:
        made.append(Part(seen.control_plane.object, children=control_plane))
    else:
        made += control_plane
    workers = [m for m in found.workers if _open(m)]
    for deployment in found.deployments:
        name = deployment.metadata.name
        mine = [_machine(m, lookup) for m in workers if m.metadata.labels.get(DEPLOYMENT_NAME_LABEL) == name]
        made.append(Part(deployment, children=mine))
    made += [Part(pool) for pool in found.pools]
    made += [_machine(m, lookup) for m in workers if DEPLOYMENT_NAME_LABEL not in m.metadata.labels]
    return made


def _open(machine: Machine) -> bool:
    return not is_true(machine.status.conditions, Condition.READY)


def _machine(machine: Machine, lookup: Lookup) -> Part:
    refs = (machine.spec.infrastructure_ref, machine.spec.bootstrap.config_ref)
    below = [obj for ref in refs if ref is not None and (obj := lookup(ref)) is not None]
    return Part(machine, children=[Part(obj) for obj in below])
