"""What the account of a kubeconfig must be allowed to do, asked before the first machine needs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from homeport.api.kubevirt.v1alpha1 import MachineSpec
from homeport.api.meta import Resource
from homeport.infra.protocol import Check
from homeport.providers.harvester.endpoint import balancer_kind
from homeport.providers.harvester.image import parse_name
from homeport.providers.harvester.infracluster.connection import HarvesterSession
from homeport.providers.harvester.infracluster.resource import (
    CLAIM,
    DATA_VOLUME,
    IMAGE,
    KEY_PAIR,
    NETWORK,
    SECRET,
    VM,
    VMI,
)
from homeport.providers.harvester.machine.plan import namespace_of
from homeport.runtime.permission import Need

PERMISSIONS = "PermissionsSufficient"
_READ = ("get", "list", "watch")
_EVERYTHING = Resource("*", "*", "*", "*")
_MACHINE = (
    (VM, (*_READ, "create", "patch", "delete")),
    (VMI, _READ),
    (SECRET, ("get", "list", "create", "patch", "delete")),
    (CLAIM, (*_READ, "patch", "delete")),
    (DATA_VOLUME, (*_READ, "patch", "delete")),
)


async def check_machines(session: HarvesterSession, specs: Iterable[MachineSpec]) -> list[Check]:
    needs: dict[Need, None] = {}
    for spec in specs:
        needs.update(dict.fromkeys(_needs_of(session, spec)))
    return await _check(session, list(needs))


async def check_front(session: HarvesterSession, kind: Resource, namespace: str) -> list[Check]:
    """For what is in front of the control plane."""
    return await _check(session, [Need(("get", "create", "patch", "delete"), kind, namespace)])


async def check_balancers(session: HarvesterSession) -> list[Check]:
    """For load balancers of Services, which are deleted with their cluster. Clusters without any need no permission."""
    need = Need(("list", "delete"), balancer_kind(session), session.namespace)
    consequence = "load balancers that Services of the workload cluster leave are not deleted with the cluster"
    return await _check(session, [need], consequence)


def _needs_of(session: HarvesterSession, spec: MachineSpec) -> Iterator[Need]:
    namespace = namespace_of(spec, session)
    for kind, verbs in _MACHINE:
        yield Need(verbs, kind, namespace)
    if _inner(spec).get("evictionStrategy") == "External":
        yield Need(("patch", "delete"), VMI, namespace)
    if spec.boot_disk is not None and session.harvester:
        yield Need(_READ, IMAGE, parse_name(spec.boot_disk.image, namespace).namespace)
    for each in spec.key_pairs if session.harvester else ():
        yield Need(_READ, KEY_PAIR, parse_name(each, namespace).namespace)
    for network in networks_of(spec):
        yield Need(_READ, NETWORK, parse_name(network, namespace).namespace)


def networks_of(spec: MachineSpec) -> list[str]:
    """Names of NetworkAttachmentDefinitions; '' for the network of Pods."""
    return [str((each.get("multus") or {}).get("networkName") or "") for each in _inner(spec).get("networks") or ()]


def _inner(spec: MachineSpec) -> dict[str, Any]:
    return (spec.virtual_machine_template.spec.get("template") or {}).get("spec") or {}


async def _check(session: HarvesterSession, needs: list[Need], consequence: str = "") -> list[Check]:
    """An administrator is recognised by one question for each namespace. With a `consequence` it stops nothing."""
    denied: list[Need] = []
    for namespace in dict.fromkeys(each.namespace for each in needs):
        here = [each for each in needs if each.namespace == namespace]
        if await session.denied([Need(("*",), _EVERYTHING, namespace)]):
            denied += await session.denied(here)
    if not denied:
        return [Check(PERMISSIONS, True)]
    listed = "; ".join(map(str, denied))
    text = (
        f"the account of {session.access.origin} lacks these permissions on {session.access.server}: {listed}: "
        f"{consequence}{': ' if consequence else ''}"
        "grant them with a Role, or use the kubeconfig of an administrator (Harvester dashboard, Support, Download "
        "Kubeconfig)"
    )
    return [Check(PERMISSIONS, False, "PermissionDenied", text, advisory=bool(consequence))]
