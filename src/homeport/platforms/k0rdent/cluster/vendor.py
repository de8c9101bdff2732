"""What the built-in templates of one infrastructure have of their own. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.client.protocol import Key
from homeport.platforms.k0rdent.cluster.distribution import Distribution
from homeport.platforms.k0rdent.cluster.reading import Reading

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Access:
    """How the infrastructure is reached."""

    secret: Key
    bundle: str = ""  # CA certificates as PEM


@dataclass(frozen=True, slots=True)
class Infrastructure:
    """What the values of a cluster say about its infrastructure."""

    settings: Json
    secret: str = ""  # in the namespace of the ClusterDeployment; '': that of the Credential, or a global one
    bundle: str = ""  # ConfigMap with CA certificates; '': none


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """One infrastructure. Its name is also that of its section of the values."""

    name: str
    title: str
    release: str  # of the provider, which owns the classes
    provider: str  # as clusterctl's inventory has it
    api_version: str
    cluster_template: str
    machine_template: str
    placeholder: Json  # spec of a machine that a patch replaces in every cluster: the schema asks for a complete one
    cluster_fields: Mapping[str, Json]  # fields of the infrastructure's spec > schema
    section: Callable[[], dict[str, Json]]  # schema of its section, without the endpoint
    machine_fields: Callable[[], dict[str, Json]]  # schema of machines, without sizes
    size_fields: Callable[[int, str, str], dict[str, Json]]  # CPUs, memory, disk
    csi_fields: Callable[[], dict[str, Json]]
    read: Callable[[Reading], Infrastructure]
    read_machine: Callable[[Reading, str], Json]  # of a role
    cluster_value: Callable[[Json, Access], Json]  # (settings, access): values of `cluster_fields`
    csi: str  # the add-on
    csi_parameters: Callable[[Reading], dict[str, str]]
    secrets: tuple[Key, ...]  # that all clusters use which name none
    credential_key: str  # for messages
    credential_field: str  # of the values, below the section
    bundle_field: str = ""
    older_values: bool = False  # values of other charts of the same name are accepted, too

    @property
    def cluster_variable(self) -> str:
        return f"{self.name}ClusterConfig"

    @property
    def machine_variable(self) -> str:
        return f"{self.name}MachineConfig"


@dataclass(frozen=True, slots=True)
class Chart:
    """A template: an infrastructure, a distribution of Kubernetes, and where the control plane runs."""

    vendor: Vendor
    distribution: Distribution
    hosted: bool

    @property
    def mode(self) -> str:
        return "hcp" if self.hosted else "standalone"

    @property
    def name(self) -> str:
        return f"{self.vendor.name}-{self.distribution.name}-{self.mode}"
