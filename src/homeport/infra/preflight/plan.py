"""The machines that a cluster is going to have, read from its control plane, MachineDeployments and their templates.

Control planes and bootstrap configurations may be of any kind that follows the contract of Cluster API.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from homeport.infra.preflight.near import near_only
from homeport.infra.reconciler import is_provisioned
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager

KUBEADM_PLANE = "KubeadmControlPlane"
KUBEADM = "KubeadmConfig"
_CLOUD_CONFIG = "cloud-config"
_OF_CLUSTER = "infra.cluster"


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


def _of_cluster(deployment: MachineDeployment) -> Iterable[str]:
    return (f"{deployment.metadata.namespace}/{deployment.spec.cluster_name}",)


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
        with contextlib.suppress(ValueError):  # another provider's plans have added it
            self._deployments.add_index(_OF_CLUSTER, _of_cluster)
        self._cluster_kind = cluster_kind.__resource__.kind
        self._template_kind = template_kind.__resource__.kind
        self._watched: dict[Any, Any] = {}
        # What the last plan of an InfraCluster was read from, by kind and key, whether it was there or not.
        self._readers: dict[tuple[str, Key], set[Key]] = {}
        self._places: dict[Key, set[tuple[str, Key]]] = {}
        manager.informers.get(cluster_kind).on_change(self._infra_changed)

    async def of(self, cluster: Cluster) -> ClusterPlan:
        machines: list[MachinePlan] = []
        asker = self._asker(cluster)
        self._forget(asker)
        ref, supplied = cluster.spec.control_plane_ref, False
        served = self._contracts.find(ref.api_group, ref.kind) if ref is not None else None
        if ref is not None and served is not None:  # a kind that is not installed is reported by core
            plane = await self._read(served, Key(cluster.metadata.namespace, ref.name), asker)
            if plane is None:
                missing = f"{ref.kind} {ref.name} does not exist yet"
                machines.append(MachinePlan(ref.name, missing=missing, control_plane=True))
            else:
                supplied = supplies_endpoint(plane, served)
                machines += self._of_plane(ref.kind, plane, served, asker)
        there: set[str] = set()
        for each in self._deployments.by(_OF_CLUSTER, f"{cluster.metadata.namespace}/{cluster.metadata.name}"):
            there.add(each.metadata.labels.get(TOPOLOGY_DEPLOYMENT_NAME_LABEL, ""))
            machines += await self._of_deployment(each, asker)
        return ClusterPlan((*machines, *_announced(cluster, there)), supplied)

    def _of_plane(self, kind: str, plane: Unstructured, served: ResolvedResource, asker: Key) -> Iterator[MachinePlan]:
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
            asker,
        )

    async def _of_deployment(self, deployment: MachineDeployment, asker: Key) -> list[MachinePlan]:
        spec, namespace = deployment.spec.template.spec, deployment.metadata.namespace
        if spec.infrastructure_ref is None:
            return []
        bootstrap, format_ = await self._bootstrap(spec.bootstrap.config_ref, namespace, asker)
        plan = MachinePlan(
            f"MachineDeployment {deployment.metadata.name}",
            1 if deployment.spec.replicas is None else deployment.spec.replicas,
            bootstrap=bootstrap,
            format=format_,
            version=spec.version,
        )
        ref = spec.infrastructure_ref
        return [self._of_template(namespace, ref.kind, ref.name, plan, asker)]

    async def _bootstrap(self, ref: Reference | None, namespace: str, asker: Key) -> tuple[str, str]:
        """The kind of a bootstrap configuration and the format of its data, as far as they are known."""
        if ref is None:
            return "", ""
        kind = ref.kind.removesuffix("Template")
        if kind != KUBEADM:
            return kind, ""
        served = self._contracts.find(ref.api_group, ref.kind)
        found = await self._read(served, Key(namespace, ref.name), asker) if served is not None else None
        if found is None:
            return kind, ""
        return kind, _text(found, "spec", "template", "spec", "format") or _CLOUD_CONFIG

    def _of_template(self, namespace: str, kind: str, name: str, plan: MachinePlan, asker: Key) -> MachinePlan:
        if kind != self._template_kind:
            text = f"its infrastructureRef names {kind or 'nothing'}, not a {self._template_kind}"
            return MachinePlan(plan.owner, missing=f"{plan.owner}: {text}")
        self._note(asker, kind, Key(namespace, name))
        template = self._templates.get(Key(namespace, name))
        if template is None:
            close = near_only(name, (each.metadata.name for each in self._templates.list(namespace)))
            text = f"{plan.owner}: {self._template_kind} {name} does not exist yet{close}"
            return MachinePlan(plan.owner, missing=text)
        return _with_template(plan, template)

    # -- objects of other kinds --------------------------------------------------------------------------------

    async def _read(self, served: ResolvedResource, key: Key, asker: Key) -> Unstructured | None:
        self._note(asker, served.resource.kind, key)
        informer = self._watched.get(served.resource)
        if informer is None:
            informer = self._controller.watch(served.resource, self._users_of(served), predicate=_spec_changed)
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

    def users_of_template(self, template: AnyObject) -> Iterable[Key]:
        return self._users(self._template_kind, key_of(template))

    def _users_of(self, served: ResolvedResource) -> Callable[[AnyObject], Iterable[Key]]:
        return lambda obj: self._users(served.resource.kind, key_of(obj))

    def _users(self, kind: str, key: Key) -> Iterable[Key]:
        """InfraClusters whose plan was read from the object, or waits for it: it does not name them itself."""
        asked = ((each, self._infra.get(each)) for each in self._readers.get((kind, key), ()))
        return [each for each, infra in asked if infra is not None and not is_provisioned(infra)]

    def _asker(self, cluster: Cluster) -> Key:
        ref = cluster.spec.infrastructure_ref
        return Key(cluster.metadata.namespace, ref.name if ref is not None else "")

    def _note(self, asker: Key, kind: str, key: Key) -> None:
        self._readers.setdefault((kind, key), set()).add(asker)
        self._places.setdefault(asker, set()).add((kind, key))

    def _infra_changed(self, old: Any, new: Any, initial: bool) -> None:
        if new is None:
            self._forget(key_of(old))

    def _forget(self, asker: Key) -> None:
        for place in self._places.pop(asker, ()):
            readers = self._readers.get(place, set())
            readers.discard(asker)
            if not readers:
                self._readers.pop(place, None)

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
