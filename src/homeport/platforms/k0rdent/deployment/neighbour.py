"""What a ClusterDeployment refers to, and what is made for it, as the caches have it."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.k0rdent.v1beta1 import (
    ClusterAuditPolicy,
    ClusterAuthentication,
    ClusterDeployment,
    ClusterIPAM,
    ClusterIPAMClaim,
    ClusterTemplate,
    ClusterTemplateChain,
    Credential,
    Management,
)
from homeport.client.protocol import Key
from homeport.platforms.k0rdent.ipam.claim import ipam_name
from homeport.platforms.k0rdent.management.chain import upgrades_of
from homeport.platforms.k0rdent.name import MANAGEMENT, RELEASE_NAME_LABEL
from homeport.runtime.informers import Informers

# A change of one of these concerns the ClusterDeployments of its namespace.
KINDS = (
    ClusterTemplate,
    ClusterTemplateChain,
    Credential,
    ClusterAuthentication,
    ClusterAuditPolicy,
    ClusterIPAMClaim,
    ClusterIPAM,
)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Objects from caches; shared, not to be changed."""

    template: ClusterTemplate | None
    credential: Credential | None
    cluster: Cluster | None
    addons: tuple[ClusterAddon, ...]
    available_providers: frozenset[str]
    upgrades: tuple[str, ...]
    authentication: ClusterAuthentication | None = None
    policy: ClusterAuditPolicy | None = None
    claim: ClusterIPAMClaim | None = None
    ipam: ClusterIPAM | None = None
    rendered: tuple[Cluster, ...] = ()  # Clusters that the chart of a user made for this ClusterDeployment


class NeighbourView:
    def __init__(self, informers: Informers) -> None:
        self._templates = informers.get(ClusterTemplate).cache
        self._chains = informers.get(ClusterTemplateChain).cache
        self._credentials = informers.get(Credential).cache
        self._managements = informers.get(Management).cache
        self._clusters = informers.get(Cluster).cache
        self._addons = informers.get(ClusterAddon).cache
        self._authentications = informers.get(ClusterAuthentication).cache
        self._policies = informers.get(ClusterAuditPolicy).cache
        self._claims = informers.get(ClusterIPAMClaim).cache
        self._ipams = informers.get(ClusterIPAM).cache

    def of(self, obj: ClusterDeployment) -> Neighbours:
        meta, spec = obj.metadata, obj.spec
        asked = spec.ipam_claim
        claim = self._claims.get(Key(meta.namespace, asked.ref or meta.name)) if asked.ref or asked.spec else None
        management = self._managements.get(Key("", MANAGEMENT))
        return Neighbours(
            template=self._templates.get(Key(meta.namespace, spec.template)),
            credential=self._credentials.get(Key(meta.namespace, spec.credential)) if spec.credential else None,
            cluster=self._clusters.get(Key(meta.namespace, meta.name)),
            addons=tuple(each for each in self._addons.list(meta.namespace) if each.spec.cluster_name == meta.name),
            available_providers=frozenset(management.status.available_providers if management else ()),
            upgrades=tuple(upgrades_of(spec.template, self._chains.list(meta.namespace))),
            rendered=tuple(
                each
                for each in self._clusters.list(meta.namespace)
                if each.metadata.labels.get(RELEASE_NAME_LABEL) == meta.name and owns(obj, each)
            ),
            authentication=self._authentications.get(Key(meta.namespace, spec.cluster_auth)),
            policy=self._policies.get(Key(meta.namespace, spec.audit_policy)),
            claim=claim,
            ipam=self._ipams.get(Key(meta.namespace, ipam_name(claim))) if claim is not None else None,
        )


def owns(deployment: ClusterDeployment, cluster: Cluster) -> bool:
    return any(
        each.uid == deployment.metadata.uid and each.kind == "ClusterDeployment"
        for each in cluster.metadata.owner_references
    )
