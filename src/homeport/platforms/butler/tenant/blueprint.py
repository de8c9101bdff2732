"""Everything that the objects of a tenant cluster are rendered from, with all questions answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeport.api.meta import Resource
from homeport.client.protocol import Key
from homeport.platforms.butler.normal.addon import DefinitionModel
from homeport.platforms.butler.tenant.name import addon_name, labels_of

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """`address` is that of the API server; '': the load balancer of the plane chooses one."""

    hosted: bool = True
    replicas: int = 1
    version: str
    data_store: str = ""
    service_type: str = "LoadBalancer"
    address: str = ""
    cert_sans: tuple[str, ...] = ()
    resources: Mapping[str, Json] = field(default_factory=dict)  # by program: apiServer, controllerManager, ...
    machine: Json | None = None  # kind and spec of the machine template of a control plane on machines
    size: str = ""  # of each machine, as the quota counts it


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerGroup:
    """Equal workers. `machine` is the machine template (apiVersion, kind, spec) of the provider."""

    name: str
    replicas: int
    version: str
    os: str
    image: str
    machine: Json
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Json, ...] = ()
    ssh_keys: tuple[str, ...] = ()
    time_servers: tuple[str, ...] = ()
    size: str = ""  # of each machine, as the quota counts it


@dataclass(frozen=True, slots=True, kw_only=True)
class AddonRequest:
    """An add-on of spec.addons or by default, of the catalogue of Homeport or of an AddonDefinition of a user."""

    name: str  # cni, loadBalancer, certManager, storage, ingress, gitops; of a default one the name of the add-on
    addon: str
    version: str = ""
    parameters: Json = field(default_factory=dict)
    values: Json = field(default_factory=dict)
    definition: DefinitionModel | None = None  # None: of the catalogue of Homeport
    depends_on: tuple[str, ...] = ()  # names of ClusterAddons


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    source: Key  # the TenantCluster
    namespace: str  # of everything that is rendered
    team: str = ""
    cluster_kind: Resource
    template_kind: Resource
    infra: tuple[Json, ...]  # of the provider, in the order of their creation: the InfraCluster is the last one
    control_plane: ControlPlane
    workers: tuple[WorkerGroup, ...]
    addons: tuple[AddonRequest, ...] = ()
    default_addons: tuple[str, ...] = ()  # names of those that the cluster got by default
    pod_cidr: str = "10.244.0.0/16"
    service_cidr: str = "10.96.0.0/12"
    paused: bool = False
    environment: str = ""
    provider: str = ""  # namespace/name of the ProviderConfig

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def addon_names(self) -> tuple[str, ...]:
        """Of the ClusterAddons."""
        return tuple(addon_name(self.name, each.addon) for each in self.addons)

    @property
    def labels(self) -> dict[str, str]:
        return labels_of(self.source, self.team)
