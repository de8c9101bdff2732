"""Cluster: a Kubernetes cluster, and how far it is."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta2.reference import ContractRef
from homeport.api.cluster.v1beta2.shape import ReplicaCounts, V1Beta1FailureStatus
from homeport.api.cluster.v1beta2.topology import Topology
from homeport.api.field import Conditions, ConditionType, NonEmpty, Port
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Format, ListType, Range, Required, Size


class ClusterAvailabilityGate(Model):
    """A condition of the Cluster that counts towards its being available."""

    condition_type: Required[ConditionType] = ""
    polarity: Annotated[str, Enum(("Positive", "Negative"))] = ""


class NetworkRanges(Model):
    """Ranges of addresses, as CIDR blocks."""

    cidr_blocks: Required[Annotated[list[Annotated[str, Size(1, 43)]], Size(1, 100), ListType("atomic")]] = []


class ClusterNetwork(NonEmpty):
    """Addresses of Pods and Services, and the DNS domain of Services."""

    api_server_port: Port = 0
    pods: NetworkRanges = msgspec.field(default_factory=NetworkRanges)
    service_domain: Annotated[str, Size(1, 253)] = ""
    services: NetworkRanges = msgspec.field(default_factory=NetworkRanges)


class APIEndpoint(NonEmpty):
    """Address and port of an API server."""

    host: Annotated[str, Size(1, 512)] = ""
    port: Port = 0


class ClusterSpec(NonEmpty):
    """Desired state of a Cluster."""

    availability_gates: Annotated[list[ClusterAvailabilityGate], Size(1, 32), ListType("map", ("conditionType",))] = []
    cluster_network: ClusterNetwork = msgspec.field(default_factory=ClusterNetwork)
    control_plane_endpoint: APIEndpoint = msgspec.field(default_factory=APIEndpoint)
    control_plane_ref: ContractRef | None = None
    infrastructure_ref: ContractRef | None = None
    paused: bool | None = None
    topology: Topology = msgspec.field(default_factory=Topology)


class ClusterControlPlaneStatus(ReplicaCounts):
    """Replicas of the control plane, counted."""


class ClusterV1Beta1DeprecatedStatus(V1Beta1FailureStatus):
    """What v1beta1 reported; nobody reads it any more."""


class ClusterDeprecatedStatus(Model):
    """Status of older versions of the API."""

    v1beta1: ClusterV1Beta1DeprecatedStatus = msgspec.field(default_factory=ClusterV1Beta1DeprecatedStatus)


class FailureDomain(Model):
    """A part of the infrastructure that fails on its own."""

    attributes: dict[str, str] = {}
    control_plane: bool | None = None
    name: Required[Annotated[str, Size(1, 256)]] = ""


class ClusterInitializationStatus(NonEmpty):
    """What came up once, and counts as up from then on."""

    control_plane_initialized: bool | None = None
    infrastructure_provisioned: bool | None = None


class WorkersStatus(ReplicaCounts):
    """Replicas of all workers, counted."""


class ClusterStatus(NonEmpty):
    """What a Cluster is."""

    conditions: Conditions = []
    control_plane: ClusterControlPlaneStatus = msgspec.field(default_factory=ClusterControlPlaneStatus)
    deprecated: ClusterDeprecatedStatus = msgspec.field(default_factory=ClusterDeprecatedStatus)
    failure_domains: Annotated[list[FailureDomain], Size(1, 100), ListType("map", ("name",))] = []
    initialization: ClusterInitializationStatus = msgspec.field(default_factory=ClusterInitializationStatus)
    observed_generation: Annotated[int, Range(1), Format("int64")] = 0
    phase: Annotated[str, Enum(("Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown"))] = ""
    workers: WorkersStatus = msgspec.field(default_factory=WorkersStatus)


@resource("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters")
class Cluster(Object):
    """A Cluster is a Kubernetes cluster: its network, control plane, infrastructure and workers."""

    spec: Required[ClusterSpec] = msgspec.field(default_factory=ClusterSpec)
    status: ClusterStatus = msgspec.field(default_factory=ClusterStatus)
