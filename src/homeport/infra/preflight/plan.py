"""The machines that a cluster is going to have, read from its control plane, MachineDeployments and their templates.

Control planes and bootstrap configurations may be of any kind that follows the contract of Cluster API.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.meta import Object, Unstructured
from homeport.capi import contract
from homeport.capi.name import TOPOLOGY_DEPLOYMENT_NAME_LABEL
from homeport.capi.object.ownership import AnyObject
from homeport.capi.resolution import Contracts, Reference, ResolvedResource
from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.infra.reconciler import is_provisioned
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager

KUBEADM_PLANE = "KubeadmControlPlane"
KUBEADM = "KubeadmConfig"
_CLOUD_CONFIG = "cloud-config"


@dataclass(frozen=True, slots=True)
class MachinePlan:
    """Machines of one owner. `missing`: something that they are made from does not exist yet."""

    owner: str  # kind and name, for messages
    count: int = 0
    template: Any = None  # an object of the provider's template kind
    bootstrap: str = ""  # kind of their bootstrap configuration; '': not known
    format: str = ""  # of their bootstrap data: cloud-config, ignition; '': not known
    version: str = ""  # of Kubernetes
    missing: str = ""
    control_plane: bool = False

    @property
    def kubeadm(self) -> bool:
        return self.bootstrap == KUBEADM


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """What is known before the first machine exists."""

    machines: tuple[MachinePlan, ...] = ()
    endpoint_supplied: bool = False  # the control plane provider supplies the control plane's endpoint


NO_PLAN: ClusterPlan = ClusterPlan()


class Plans:
    """Reads plans from caches. Kinds that clusters refer to are watched from the first time they are needed."""

    def __init__(
        self, manager: Manager, controller: Controller, cluster_kind: type[Object], template_kind: type[Object]
    ) -> None:
        # A change of a control plane or bootstrap template wakes its keys, which are InfraClusters.
        self._controller = controller
        self._client = manager.client
        self._contracts = Contracts(manager.informers)
        self._infra = manager.informers.get(cluster_kind).cache
        self._clusters = manager.informers.get(Cluster).cache
        self._templates = manager.informers.get(template_kind).cache
        self._deployments = manager.informers.get(MachineDeployment).cache
        self._cluster_kind = cluster_kind.__resource__.kind
        self._template_kind = template_kind.__resource__.kind
        self._watched: dict[Any, Any] = {}

    async def of(self, cluster: Cluster) -> ClusterPlan:
        machines: list[MachinePlan] = []
        ref, supplied = cluster.spec.control_plane_ref, False
        served = self._contracts.find(ref.api_group, ref.kind) if ref is not None else None
        if ref is not None and served is not None:  # a kind that is not installed is reported by core
            plane = await self._read(served, Key(cluster.metadata.namespace, ref.name))
            if plane is None:
                missing = f"{ref.kind} {ref.name} does not exist yet"
                machines.append(MachinePlan(ref.name, missing=missing, control_plane=True))
            else:
                supplied = supplies_endpoint(plane, served)
                machines += self._of_plane(ref.kind, plane, served)
        there: set[str] = set()
        for each in self._deployments.list(cluster.metadata.namespace):
            if each.spec.cluster_name == cluster.metadata.name:
                there.add(each.metadata.labels.get(TOPOLOGY_DEPLOYMENT_NAME_LABEL, ""))
                machines += await self._of_deployment(each)
        return ClusterPlan((*machines, *_announced(cluster, there)), supplied)

    def _of_plane(self, kind: str, plane: Unstructured, served: ResolvedResource) -> Iterator[MachinePlan]:
        ref = contract.control_plane.infrastructure_ref(plane, served.contract)
        if ref is None and kind != KUBEADM_PLANE:
            return  # it has no machines: somebody runs it as a service
        bootstrap = KUBEADM if kind == KUBEADM_PLANE else ""
        format_ = _text(plane, "spec", "kubeadmConfigSpec", "format") or (_CLOUD_CONFIG if bootstrap else "")
        replicas = contract.control_plane.replicas(plane)
        yield self._of_template(
            plane.namespace,
            str((ref or {}).get("kind") or ""),
            str((ref or {}).get("name") or ""),
            MachinePlan(
                f"{kind} {plane.name}",
                1 if replicas is None else replicas,
                bootstrap=bootstrap,
                format=format_,
                version=contract.control_plane.version(plane),
                control_plane=True,
            ),
        )

    async def _of_deployment(self, deployment: MachineDeployment) -> list[MachinePlan]:
        spec, namespace = deployment.spec.template.spec, deployment.metadata.namespace
        if spec.infrastructure_ref is None:
            return []
        bootstrap, format_ = await self._bootstrap(spec.bootstrap.config_ref, namespace)
        plan = MachinePlan(
            f"MachineDeployment {deployment.metadata.name}",
            1 if deployment.spec.replicas is None else deployment.spec.replicas,
            bootstrap=bootstrap,
            format=format_,
            version=spec.version,
        )
        return [self._of_template(namespace, spec.infrastructure_ref.kind, spec.infrastructure_ref.name, plan)]

    async def _bootstrap(self, ref: Reference | None, namespace: str) -> tuple[str, str]:
        """The kind of a bootstrap configuration and the format of its data, as far as they are known."""
        if ref is None:
            return "", ""
        kind = ref.kind.removesuffix("Template")
        if kind != KUBEADM:
            return kind, ""
        served = self._contracts.find(ref.api_group, ref.kind)
        found = await self._read(served, Key(namespace, ref.name)) if served is not None else None
        if found is None:
            return kind, ""
        return kind, _text(found, "spec", "template", "spec", "format") or _CLOUD_CONFIG

    def _of_template(self, namespace: str, kind: str, name: str, plan: MachinePlan) -> MachinePlan:
        if kind != self._template_kind:
            text = f"its infrastructureRef names {kind or 'nothing'}, not a {self._template_kind}"
            return MachinePlan(plan.owner, missing=f"{plan.owner}: {text}")
        template = self._templates.get(Key(namespace, name))
        if template is None:
            return MachinePlan(plan.owner, missing=f"{plan.owner}: {self._template_kind} {name} does not exist yet")
        return _with_template(plan, template)

    # -- objects of other kinds --------------------------------------------------------------------------------

    async def _read(self, served: ResolvedResource, key: Key) -> Unstructured | None:
        informer = self._watched.get(served.resource)
        if informer is None:
            informer = self._controller.watch(served.resource, self.unprovisioned_beside, predicate=_spec_changed)
            self._watched[served.resource] = informer
        if informer is not None and informer.synced.is_set():
            cached: Unstructured | None = informer.cache.get(key)
            return cached
        try:
            live: Unstructured = await self._client.get(served.resource, key)
        except NotFound:
            return None
        return live

    # -- whom a change concerns --------------------------------------------------------------------------------

    def unprovisioned_beside(self, obj: AnyObject) -> Iterable[Key]:
        """InfraClusters of the namespace that may be waiting for it; it does not say to which one it belongs."""
        return [key_of(each) for each in self._infra.list(key_of(obj).namespace) if not is_provisioned(each)]

    def infra_of_deployment(self, deployment: MachineDeployment) -> Iterable[Key]:
        cluster = self._clusters.get(Key(deployment.metadata.namespace, deployment.spec.cluster_name))
        ref = cluster.spec.infrastructure_ref if cluster is not None else None
        if ref is not None and ref.kind == self._cluster_kind:
            yield Key(deployment.metadata.namespace, ref.name)


def _announced(cluster: Cluster, there: set[str]) -> Iterator[MachinePlan]:
    """MachineDeployments of a topology that do not exist yet. With a hosted control plane, only they name subnets."""
    for each in cluster.spec.topology.workers.machine_deployments:
        if each.name not in there:
            yield MachinePlan(each.name, missing=f"the MachineDeployment of topology {each.name} does not exist yet")


def supplies_endpoint(plane: Mapping[str, Any], served: ResolvedResource) -> bool:
    """Control planes that have an endpoint field of their own, or no machines, say where they answer."""
    return (
        contract.value_at(plane, "spec", "controlPlaneEndpoint") is not None
        or contract.control_plane.external(plane)
        or (
            contract.control_plane.infrastructure_ref(plane, served.contract) is None
            and served.resource.kind != KUBEADM_PLANE
        )
    )


def _with_template(plan: MachinePlan, template: Any) -> MachinePlan:
    return MachinePlan(
        plan.owner, plan.count, template, plan.bootstrap, plan.format, plan.version, control_plane=plan.control_plane
    )


def _text(obj: Mapping[str, Any], *path: str) -> str:
    value = contract.value_at(obj, *path)
    return value if isinstance(value, str) else ""


def _spec_changed(old: Any, new: Any) -> bool:
    return old is None or new is None or old.get("spec") != new.get("spec")
