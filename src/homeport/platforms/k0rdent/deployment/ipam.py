"""The addresses of a ClusterDeployment: its ClusterIPAMClaim, and what the templates make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from homeport.api.k0rdent.v1beta1 import GROUP, VERSION, ClusterIPAMClaim
from homeport.api.meta import wire
from homeport.capi.object.ownership import owner_reference
from homeport.machinery import condition
from homeport.platforms.k0rdent.cluster.config import ClusterConfig
from homeport.platforms.k0rdent.deployment.render import release_labels
from homeport.platforms.k0rdent.deployment.scope import DeploymentScope
from homeport.platforms.k0rdent.deployment.state import ADDRESSES, Finding, failed, good, progressing
from homeport.platforms.k0rdent.ipam.pool import NODE_NETWORK
from homeport.runtime.applier import Applier

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Addressing:
    """`findings` is empty if the ClusterDeployment asks for no addresses. `data`: by network."""

    findings: tuple[Finding, ...] = ()
    data: Mapping[str, Json] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        return all(each.good for each in self.findings)

    @property
    def values(self) -> Json:
        """For charts of users."""
        return {"ipamEnabled": True, **self.data} if self.data else {}


def claim_name(scope: DeploymentScope) -> str:
    """'' if the ClusterDeployment asks for no addresses."""
    asked = scope.object.spec.ipam_claim
    return asked.ref or (scope.name if asked.spec is not None else "")


async def find_addresses(scope: DeploymentScope, applier: Applier) -> Addressing:
    name, claim = claim_name(scope), scope.near.claim
    if not name:
        return Addressing()
    asked = scope.object.spec.ipam_claim
    if not asked.ref and not scope.object.spec.dry_run:
        kind = ClusterIPAMClaim.__resource__
        await applier.hold(scope.key, _render(scope), kind, cached=claim, watched=True)
    if claim is None:
        if asked.ref:
            where = f"in namespace {scope.namespace}"
            text = f'spec.ipamClaim.ref: ClusterIPAMClaim "{name}" does not exist {where}: create it'
            return Addressing((failed(ADDRESSES, text),))
        return Addressing((progressing(ADDRESSES, f"ClusterIPAMClaim {name} is being created"),))
    if claim.spec.cluster not in ("", scope.name):
        text = f"ClusterIPAMClaim {name} is for cluster {claim.spec.cluster}: use another claim"
        return Addressing((failed(ADDRESSES, text),))
    ipam = scope.near.ipam
    if not claim.status.bound or ipam is None:
        said = condition.find(claim.status.conditions, "Ready") or {}
        why = said.get("message") or "it is being read"
        return Addressing((progressing(ADDRESSES, f"ClusterIPAMClaim {name} is not bound: {why}"),))
    data = {each.name: each.config for each in ipam.status.provider_data}
    return Addressing((good(ADDRESSES),), data)


def with_addresses(config: ClusterConfig, addressing: Addressing) -> ClusterConfig:
    """Machines get the addresses of their first network card from the pool of the node network."""
    found = addressing.data.get(NODE_NETWORK)
    if found is None:
        return config
    pools = {"addressesFromPools": [found["ipPool"]]}
    plane = {**config.control_plane, **pools} if config.control_plane else config.control_plane
    return replace(config, worker={**config.worker, **pools}, control_plane=plane)


def _render(scope: DeploymentScope) -> Json:
    spec = wire(scope.object.spec.ipam_claim.spec)
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "ClusterIPAMClaim",
        "metadata": {
            "name": scope.name,
            "namespace": scope.namespace,
            "labels": release_labels(scope.object),
            "ownerReferences": [owner_reference(scope.object, controller=True)],
        },
        "spec": {**spec, "cluster": scope.name},
    }
