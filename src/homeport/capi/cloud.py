"""What a cloud controller manager asks of a vendor, and how workload clusters on that vendor get one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Object, Unstructured
from homeport.client.dial import DialOptions
from homeport.client.protocol import Client, Key
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait


@dataclass(frozen=True, slots=True)
class Address:
    type: Literal["InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS"]
    address: str


@dataclass(frozen=True, slots=True)
class CloudInstance:
    """The machine behind a Node."""

    provider_id: str
    instance_type: str
    region: str = ""
    zone: str = ""
    shutdown: bool = False
    addresses: tuple[Address, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


class Balancer(Protocol):
    """Load balancers of the infrastructure for Services of the workload cluster. Raises ProviderError."""

    async def ensure(self, service: Unstructured) -> str | Wait:
        """Creates or updates the Service's load balancer. Its address or host name, once it has one."""

    async def remove(self, service: Unstructured) -> Wait | None:
        """None: it was seen to be gone."""


class Cloud(Protocol):
    """A vendor as the cloud controller manager sees it. Nodes are plain objects of the workload cluster."""

    async def instance(self, node: Unstructured) -> CloudInstance | None:
        """The Node's machine; None: it does not exist."""

    @property
    def balancer(self) -> Balancer | None:
        """None: there is none; Services of type LoadBalancer are left to others, or get addresses from pools."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Sources:
    """The Secrets and ConfigMaps that a connection to a vendor is made of. A change of one triggers a reconcile."""

    secrets: tuple[Key, ...] = ()
    config_maps: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class CloudFile:
    """A configuration file that was read. `pools` (name > ranges) has addresses for Services."""

    open: Callable[[Client, Clock, DialOptions], Cloud]
    pools: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CloudRequest:
    """Where in the workload cluster the configuration will be, and what goes into it.

    Without `secret` the manager runs in the plane: it reads the Secret that the InfraCluster refers to, and
    `CloudConfig.secret` is empty.
    """

    cluster: Cluster
    namespace: str = ""
    secret: str = ""  # name of the Secret with the credentials
    pools: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CloudConfig:
    """The configuration of one workload cluster's cloud controller manager. `secret` is in clear text."""

    file: str  # as the vendor names it
    text: str
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)
    balances: bool = False  # its Cloud has a Balancer


class CloudConfigurator(Protocol):
    """Renders the configuration of workload clusters from their InfraCluster. Raises ProviderError."""

    def sources(self, infra: Any) -> Sources: ...

    def render(self, infra: Any, request: CloudRequest) -> Awaitable[CloudConfig]: ...


@dataclass(frozen=True, slots=True)
class CloudSupport:
    """A component's part of the cloud controller manager."""

    name: str  # the value of --cloud
    file: str  # the vendor's own name for the configuration file
    kind: type[Object]  # the InfraCluster
    parse: Callable[[str, str], CloudFile]  # (text, namespace). Raises Misconfigured, naming the field.
    configurator: Callable[[Client, Clock], CloudConfigurator]
