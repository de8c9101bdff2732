"""Cluster: a Kubernetes cluster, and how far it is."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta1.topology import Topology
from homeport.api.cluster.v1beta2.cluster import ClusterAvailabilityGate, ClusterControlPlaneStatus, WorkersStatus
from homeport.api.core.v1 import ObjectReference
from homeport.api.field import Conditions, Long, OldCondition
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, ListType, Required, Size


class NetworkRanges(Model):
    """Ranges of addresses, as CIDR blocks."""

    cidr_blocks: Required[Annotated[list[Annotated[str, Size(1, 43)]], Size(None, 100)]] = []


class ClusterNetwork(Model):
    """Addresses of Pods and Services, and the DNS domain of Services."""

    api_server_port: int | None = None
    pods: NetworkRanges | None = None
    service_domain: Annotated[str, Size(1, 253)] = ""
    services: NetworkRanges | None = None


class APIEndpoint(Model):
    """Address and port of an API server."""

    host: Annotated[str, Size(None, 512)] = ""
    port: int = 0


class ClusterSpec(Model):
    """Desired state of a Cluster."""

    availability_gates: Annotated[
        list[ClusterAvailabilityGate], Size(None, 32), ListType("map", ("conditionType",))
    ] = []
    cluster_network: ClusterNetwork | None = None
    control_plane_endpoint: APIEndpoint = msgspec.field(default_factory=APIEndpoint)
    control_plane_ref: ObjectReference | None = None
    infrastructure_ref: ObjectReference | None = None
    paused: bool = False
    topology: Topology | None = None


class FailureDomainSpec(Model):
    """A part of the infrastructure that fails on its own."""

    attributes: dict[str, str] = {}
    control_plane: bool = False


class ClusterV1Beta2Status(Model):
    """Status in the manner of v1beta2."""

    conditions: Conditions = []
    control_plane: ClusterControlPlaneStatus | None = None
    workers: WorkersStatus | None = None


class ClusterStatus(Model):
    """What a Cluster is."""

    conditions: list[OldCondition] = []
    control_plane_ready: bool = False
    failure_domains: dict[str, FailureDomainSpec] = {}
    failure_message: Annotated[str, Size(1, 10240)] | None = None
    failure_reason: str | None = None
    infrastructure_ready: bool = False
    observed_generation: Long = 0
    phase: Annotated[str, Enum(("Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown"))] = ""
    v1beta2: ClusterV1Beta2Status | None = None


@resource("cluster.x-k8s.io", "v1beta1", "Cluster", "clusters")
class Cluster(Object):
    """A Cluster is a Kubernetes cluster: its network, control plane, infrastructure and workers."""

    spec: ClusterSpec = msgspec.field(default_factory=ClusterSpec)
    status: ClusterStatus = msgspec.field(default_factory=ClusterStatus)
