"""Kinds of the Acme provider."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from homeport.api.cluster.v1beta2 import MachineAddress
from homeport.api.infrastructure import AnyConditions, Initialization, MachineTemplateStatus, TemplateMeta
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Default, Description, Loose, Pattern, Range, Required, Size

GROUP = "infrastructure.cluster.x-k8s.io"
VERSION = "v1alpha1"


class Endpoint(Model):
    host: Annotated[str, Size(None, 512), Description("IP address or DNS name, for example 10.20.0.10.")] = ""
    port: Annotated[int, Description("Port. Default: 6443.")] = 0


class ClusterSpec(Model):
    endpoint: Required[
        Annotated[str, Size(1), Description("Host and port of the Acme API, for example acme.example.com:8443.")]
    ] = ""
    credentials_secret: Required[
        Annotated[str, Size(1), Description("Name of a Secret in this namespace with an API token in the key token.")]
    ] = ""
    control_plane_endpoint: Annotated[
        Endpoint, Description("A free address of the machines' network, where the Kubernetes API will answer.")
    ] = msgspec.field(default_factory=Endpoint)


class ClusterStatus(Model):
    ready: Annotated[bool, Description("True when the infrastructure is ready to be used.")] = False
    initialization: Initialization = msgspec.field(default_factory=Initialization)
    failure_domains: Annotated[list[dict[str, Any]], Loose()] = []
    conditions: AnyConditions = []


@resource(GROUP, VERSION, "AcmeCluster", "acmeclusters")
class AcmeCluster(Object):
    """An AcmeCluster describes where a cluster runs: the Acme API, its credentials, and the control plane's address."""

    spec: ClusterSpec = msgspec.field(default_factory=ClusterSpec)
    status: ClusterStatus = msgspec.field(default_factory=ClusterStatus)


class MachineSpec(Model):
    provider_id: Annotated[str, Description("Set by the provider: acme://ID.")] = msgspec.field(
        default="", name="providerID"
    )
    image: Required[Annotated[str, Size(1), Description("Name of the image, for example ubuntu-kube-v1.30.0.")]] = ""
    network: Required[Annotated[str, Size(1), Description("Name of the network, for example machines.")]] = ""
    cpus: Annotated[int, Range(1, 128), Default(2), Description("Number of CPUs. Default: 2.")] = 2
    memory: Annotated[str, Pattern("^[0-9]+Gi$"), Default("4Gi"), Description("Memory, in Gi. Default: 4Gi.")] = "4Gi"


class MachineStatus(Model):
    ready: Annotated[bool, Description("True when the machine runs and has an address.")] = False
    initialization: Initialization = msgspec.field(default_factory=Initialization)
    addresses: Annotated[list[MachineAddress], Description("Addresses and host name of the machine.")] = []
    failure_domain: Annotated[str | None, Description("The failure domain that the machine runs in.")] = None
    conditions: AnyConditions = []


@resource(GROUP, VERSION, "AcmeMachine", "acmemachines")
class AcmeMachine(Object):
    """An AcmeMachine is a virtual machine on Acme that becomes a Kubernetes Node."""

    spec: MachineSpec = msgspec.field(default_factory=MachineSpec)
    status: MachineStatus = msgspec.field(default_factory=MachineStatus)


class MachineTemplateResource(Model):
    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    spec: Required[MachineSpec] = msgspec.field(default_factory=MachineSpec)


class MachineTemplateSpec(Model):
    template: Required[MachineTemplateResource] = msgspec.field(default_factory=MachineTemplateResource)


@resource(GROUP, VERSION, "AcmeMachineTemplate", "acmemachinetemplates")
class AcmeMachineTemplate(Object):
    """An AcmeMachineTemplate is the template of the machines of a control plane or MachineDeployment."""

    spec: MachineTemplateSpec = msgspec.field(default_factory=MachineTemplateSpec)
    status: MachineTemplateStatus = msgspec.field(default_factory=MachineTemplateStatus)
