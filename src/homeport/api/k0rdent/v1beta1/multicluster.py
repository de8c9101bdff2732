"""Services for many clusters: MultiClusterService, and the ServiceSet of each cluster."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions, LabelSelector, Long, Time
from homeport.api.k0rdent.v1beta1.part import GROUP, VERSION, ObjectReference, Strings
from homeport.api.k0rdent.v1beta1.service import (
    HelmOptions,
    ServiceProvider,
    ServiceSpec,
    ServiceState,
    ServiceUpgradePaths,
    ValuesFrom,
)
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Required


class MultiClusterServiceSpec(Model):
    """Services, and the clusters that get them."""

    cluster_selector: LabelSelector = {}
    depends_on: Strings = []
    service_spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)
    keep_services_on_selector_mismatch: bool = False


class MatchingCluster(ObjectReference):
    """A cluster that gets the services."""

    deployed: bool = False
    regional: bool = False
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class MultiClusterServiceStatus(Model):
    """State of the services in all clusters."""

    services: list[ServiceState] = []
    services_upgrade_paths: list[ServiceUpgradePaths] = []
    matching_clusters: list[MatchingCluster] = []
    conditions: Conditions = []
    observed_generation: Long = 0


@resource(GROUP, VERSION, "MultiClusterService", "multiclusterservices", namespaced=False)
class MultiClusterService(Object):
    """A MultiClusterService brings services into all clusters whose labels match."""

    spec: MultiClusterServiceSpec = msgspec.field(default_factory=MultiClusterServiceSpec)
    status: MultiClusterServiceStatus = msgspec.field(default_factory=MultiClusterServiceStatus)


class ServiceWithValues(Model):
    """A service, with the template that is deployed now."""

    name: Required[str] = ""
    namespace: Required[str] = ""
    template: Required[str] = ""
    version: str = ""
    values: str = ""
    values_from: list[ValuesFrom] = []
    helm_action: Annotated[str, Enum(("Install", "Uninstall"))] = ""
    helm_options: HelmOptions | None = None


class ServiceSetSpec(Model):
    """Services of one cluster."""

    cluster: Required[str] = ""
    multi_cluster_service: str = ""
    provider: Required[ServiceProvider] = msgspec.field(default_factory=ServiceProvider)
    services: list[ServiceWithValues] = []


class ServiceSetProviderState(Model):
    """State of what brings the services into the cluster."""

    ready: bool = False
    suspended: bool = False


class ServiceSetStatus(Model):
    """State of the services."""

    cluster: ObjectReference | None = None
    deployed: bool = False
    provider: ServiceSetProviderState = msgspec.field(default_factory=ServiceSetProviderState)
    services: list[ServiceState] = []
    conditions: Conditions = []
    observed_generation: Long = 0


@resource(GROUP, VERSION, "ServiceSet", "servicesets")
class ServiceSet(Object):
    """A ServiceSet holds the services of one cluster. ClusterDeployments and MultiClusterServices make it."""

    spec: ServiceSetSpec = msgspec.field(default_factory=ServiceSetSpec)
    status: ServiceSetStatus = msgspec.field(default_factory=ServiceSetStatus)
