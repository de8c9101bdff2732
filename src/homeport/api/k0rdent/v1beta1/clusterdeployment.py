"""ClusterDeployment: a cluster that is made from a template."""

from __future__ import annotations

import msgspec

from homeport.api.field import Conditions, Long
from homeport.api.k0rdent.v1beta1.ipam import ClusterIPAMClaimSpec
from homeport.api.k0rdent.v1beta1.part import GROUP, VERSION, Strings, Text, Values
from homeport.api.k0rdent.v1beta1.service import ServiceSpec, ServiceState, ServiceUpgradePaths
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Required


class IpamClaim(Model):
    """Where the addresses of the cluster come from."""

    ref: str = ""
    spec: ClusterIPAMClaimSpec | None = None


class ClusterDeploymentSpec(Model):
    """The template of the cluster, and values for it."""

    template: Required[Text] = ""
    credential: str = ""
    config: Values | None = None
    propagate_credentials: bool | None = None
    dry_run: bool = False
    service_spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)
    cluster_auth: str = ""
    data_source: str = ""
    audit_policy: str = ""
    cleanup_on_deletion: bool = False
    ipam_claim: IpamClaim = msgspec.field(default_factory=IpamClaim)


class ClusterDeploymentStatus(Model):
    """State of the cluster."""

    conditions: Conditions = []
    services: list[ServiceState] = []
    services_upgrade_paths: list[ServiceUpgradePaths] = []
    k8s_version: str = ""
    region: str = ""
    available_upgrades: Strings = []
    dry_run_diff: str = ""
    observed_generation: Long = 0


@resource(GROUP, VERSION, "ClusterDeployment", "clusterdeployments")
class ClusterDeployment(Object):
    """A ClusterDeployment is a cluster that is made from a ClusterTemplate and kept like it."""

    spec: Required[ClusterDeploymentSpec] = msgspec.field(default_factory=ClusterDeploymentSpec)
    status: ClusterDeploymentStatus = msgspec.field(default_factory=ClusterDeploymentStatus)
