"""Brings the cloud controller manager into workload clusters whose Nodes wait for one.

It leaves nothing behind that a Cluster would have to wait for: what it applies goes with the workload cluster.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource, Unstructured
from homeport.capi.capi import Capi
from homeport.capi.cloud import CloudRequest, CloudSupport
from homeport.capi.object.paused import is_paused
from homeport.capi.remote.workload import Remote
from homeport.ccm.manifest import (
    CONTROL_PLANE,
    DAEMON_SET,
    DEPLOYMENT,
    IMAGE,
    NAME,
    NAMESPACE,
    SECRET_NAME,
    SERVICE_ACCOUNT,
    Settings,
    render,
)
from homeport.ccm.node import initialised
from homeport.ccm.service import parse_pools
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Key, Query, Write
from homeport.infra.error import ProviderError, delay_of, policy_of
from homeport.runtime.cache import Cache, key_of
from homeport.runtime.controller import Controller
from homeport.runtime.informer import metadata_only
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait

MANAGED = "ccm.homeport.dev/managed"  # "false": somebody else brings one
IMAGE_OF_CLUSTER = "ccm.homeport.dev/image"  # instead of the one that the plane was started with
POOL = "ccm.homeport.dev/address-pool"  # addresses for Services of type LoadBalancer: FIRST-LAST or CIDR, by commas
_ANY = "cloud-controller-manager"
_KUBEADM_PLANE = "KubeadmControlPlane"
_WRITE = Write(field_manager="homeport")
_REFUSED_SECONDS = 30.0
_REPLACED_SECONDS = 30.0
_AGAIN_SECONDS = 300.0
_LATER = Wait("Watching", "the applied objects are checked periodically", after=_AGAIN_SECONDS, quiet=True)
_DEPLOYMENTS = Query(namespace=NAMESPACE)
_SECRET = metadata_only(Resource("", "v1", "Secret", "secrets"))
_CONFIG_MAP = metadata_only(Resource("", "v1", "ConfigMap", "configmaps"))


class _Cloud:
    """A component's cloud with the means to configure it on this manager."""

    def __init__(self, manager: Manager, support: CloudSupport) -> None:
        self.kind = support.kind
        self._name = support.name
        self._configurator = support.configurator(manager.client, manager.clock)
        self.sources = self._configurator.sources

    async def settings(self, infra: Any, cluster: Cluster) -> Settings:
        """Raises ProviderError."""
        ranges = cluster.metadata.annotations.get(POOL, "")
        pools = {"default": ranges} if ranges else {}
        parse_pools(pools)
        request = CloudRequest(cluster, NAMESPACE, SECRET_NAME, pools)
        config = await self._configurator.render(infra, request)
        services = bool(pools) or config.balances
        return Settings(self._name, config.file, config.text, config.secret, services=services)


@dataclass(frozen=True, slots=True)
class _Applied:
    digest: str
    sent_at: float  # by the clock that never jumps


class DeployReconciler:
    """Keyed by Cluster. Deployments of the workload cluster are watched, so one that is deleted comes back at once; all
    other objects are applied again now and then, which changes nothing that is as it should be."""

    def __init__(self, manager: Manager, capi: Capi, clouds: Mapping[str, _Cloud], image: str = "") -> None:
        self._remotes = capi.remotes
        self._recorder = manager.recorder
        self._clusters = manager.informers.get(Cluster).cache
        self._infra = {kind: manager.informers.get(each.kind).cache for kind, each in clouds.items()}
        self._clouds = clouds
        self._image = image or IMAGE
        self._applied: dict[Key, _Applied] = {}  # spares requests, and is never taken for what is there
        self._foreign: dict[Key, float | None] = {}  # clusters that had one that is not ours, and when it went
        self._failures: dict[Key, int] = {}
        self._handlers: dict[Key, Callable[[Unstructured | None, Unstructured | None], None]] = {}
        self._clock = manager.clock
        self.controller = Controller("cloud-controller-manager", Cluster, self, predicate=_changed)

    async def reconcile(self, key: Key) -> Wait | None:
        cluster = self._clusters.get(key)
        remote = self._remotes.get(key)
        if cluster is None or not self._wanted(cluster):
            self._applied.pop(key, None)
            self._foreign.pop(key, None)
            self._failures.pop(key, None)
            self._handlers.pop(key, None)
            return None
        if remote is None:
            return None  # a connection enqueues the Cluster again
        try:
            wait = await self._bring(key, cluster, remote)
        except ProviderError as error:
            return self._trouble(key, cluster, policy_of(error).reason, error.message, error)
        except ApiError as error:
            message = f"the cloud controller manager can't be applied to the cluster: {error}"
            return self._trouble(key, cluster, "CloudControllerManagerNotApplied", message)
        self._failures.pop(key, None)
        return wait

    def _wanted(self, cluster: Cluster) -> bool:
        meta, ref = cluster.metadata, cluster.spec.infrastructure_ref
        return (
            ref is not None
            and ref.kind in self._clouds
            and not meta.deletion_timestamp
            and not is_paused(cluster, cluster)
            and meta.annotations.get(MANAGED, "").lower() != "false"
        )

    async def _bring(self, key: Key, cluster: Cluster, remote: Remote) -> Wait | None:
        remote.watch(DEPLOYMENT, _DEPLOYMENTS, self._handler(key))
        deployments = await remote.cached(DEPLOYMENT, _DEPLOYMENTS)
        waiting = any(not initialised(node) for node in remote.nodes)
        there = Key(NAMESPACE, NAME) in deployments
        if other := await _other(remote, deployments):
            self._foreign[key] = None
            if there:
                await self._give_way(key, cluster, remote, other)
            return _LATER
        known = waiting or there or key in self._foreign or key in self._applied
        if not known and not await _was_here(remote):
            return None  # no Node needs one
        if not waiting and (wait := self._await_another(key)):
            return wait
        assert cluster.spec.infrastructure_ref is not None
        kind = cluster.spec.infrastructure_ref.kind
        infra = self._infra[kind].get(Key(key.namespace, cluster.spec.infrastructure_ref.name))
        if infra is None:
            return None  # its coming wakes us
        settings = await self._clouds[kind].settings(infra, cluster)
        settings = replace(settings, workers=runs_on_workers(cluster, remote.nodes))
        await self._apply(key, cluster, remote, settings, there=there)
        self._foreign.pop(key, None)
        return _LATER

    def _await_another(self, key: Key) -> Wait | None:
        """Users who replace theirs with another of theirs delete the old one first: ours must not come in between."""
        if key not in self._foreign:
            return None
        now = self._clock.monotonic()
        since = self._foreign[key]
        if since is None:
            since = self._foreign[key] = now
        left = since + _REPLACED_SECONDS - now
        text = (
            "the cloud controller manager of the cluster no longer exists: Homeport installs its own unless "
            "another one is installed"
        )
        return Wait("CloudControllerManagerGone", text, after=left) if left > 0 else None

    def _handler(self, key: Key) -> Callable[[Unstructured | None, Unstructured | None], None]:
        def changed(old: Unstructured | None, new: Unstructured | None) -> None:
            found = new if new is not None else old
            if found is not None and _ANY in found.name and (old is None or new is None):
                self.controller.wake(key)  # not for changes: its status changes all the time

        return self._handlers.setdefault(key, changed)

    async def _apply(self, key: Key, cluster: Cluster, remote: Remote, settings: Settings, *, there: bool) -> None:
        objects = render(settings, cluster.metadata.annotations.get(IMAGE_OF_CLUSTER, "") or self._image)
        # Nothing of a Secret is kept here but that it has changed.
        digest = hashlib.sha256(json.dumps([each for each, _ in objects], sort_keys=True).encode()).hexdigest()
        known, now = self._applied.get(key), self._clock.monotonic()
        if there and known is not None and known.digest == digest and now - known.sent_at < 0.9 * _AGAIN_SECONDS:
            return
        for body, kind in objects:
            await remote.client.apply(body, _WRITE, kind=kind, force=True)
        if not there:
            self._recorder.record(cluster, "CloudControllerManagerApplied", f"{NAME} manages the cluster's Nodes")
        self._applied[key] = _Applied(digest, now)

    async def _give_way(self, key: Key, cluster: Cluster, remote: Remote, other: str) -> None:
        """Two of them would undo each other's work: ours goes."""
        self._applied.pop(key, None)
        try:
            await remote.client.delete(DEPLOYMENT, Key(NAMESPACE, NAME), propagation="Background")
        except NotFound:
            return
        self._recorder.record(cluster, "CloudControllerManagerRemoved", f"{other} manages the cluster's Nodes")

    def _trouble(
        self, key: Key, cluster: Cluster, reason: str, message: str, error: ProviderError | None = None
    ) -> Wait:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        if count == 1:
            self._recorder.record(cluster, reason, message, warning=True)
        return Wait(reason, message, after=_REFUSED_SECONDS if error is None else delay_of(error, count))


def runs_on_workers(cluster: Cluster, nodes: Iterable[Unstructured]) -> bool:
    """Hosted control planes and k0s have no Nodes for it. kubeadm labels its own only a moment after they joined."""
    ref = cluster.spec.control_plane_ref
    kubeadm = ref is not None and ref.kind == _KUBEADM_PLANE
    return not kubeadm and not any(_is_control_plane(each) for each in nodes)


def _is_control_plane(node: Unstructured | None) -> bool:
    return node is not None and CONTROL_PLANE in (node.metadata.get("labels") or {})


async def _was_here(remote: Remote) -> bool:
    """Whether the cluster once had ours: what its Pods need stays when the Deployment goes."""
    try:
        await remote.client.get(metadata_only(SERVICE_ACCOUNT), Key(NAMESPACE, NAME))
    except NotFound:
        return False
    return True


async def _other(remote: Remote, deployments: Cache[Unstructured]) -> str:
    """A cloud controller manager that is not ours; '' if there is none."""
    daemon_sets = await remote.client.list(metadata_only(DAEMON_SET), Query(namespace=NAMESPACE))
    found = [(DEPLOYMENT.kind, each.name) for each in deployments]
    found += [(DAEMON_SET.kind, each.metadata.name) for each in daemon_sets.items]
    others = [f"{kind} {NAMESPACE}/{name}" for kind, name in found if _ANY in name and name != NAME]
    return min(others, default="")


def install(manager: Manager, capi: Capi, supports: Iterable[CloudSupport], image: str = "") -> Controller:
    """`image` is that of the cloud controller manager; '': the one of this release."""
    clouds = {each.kind.__resource__.kind: _Cloud(manager, each) for each in supports}
    reconciler = DeployReconciler(manager, capi, clouds, image)
    controller = reconciler.controller
    clusters = manager.informers.get(Cluster).cache

    def of_infra(kind: str) -> Callable[[Any], Iterable[Key]]:
        def clusters_of(infra: Any) -> Iterable[Key]:
            for cluster in clusters.list(infra.metadata.namespace):
                ref = cluster.spec.infrastructure_ref
                if ref is not None and (ref.kind, ref.name) == (kind, infra.metadata.name):
                    yield key_of(cluster)

        return clusters_of

    def users_of(obj: Any) -> Iterable[Key]:
        """Clusters whose connection is made of this Secret or ConfigMap."""
        key = key_of(obj)
        for kind, cloud in clouds.items():
            for infra in manager.informers.get(cloud.kind).cache:
                found = cloud.sources(infra)
                if key in (*found.secrets, *found.config_maps):
                    yield from of_infra(kind)(infra)

    for kind, cloud in clouds.items():
        controller.map(cloud.kind, of_infra(kind), predicate=_spec_changed)
    controller.map(_SECRET, users_of).map(_CONFIG_MAP, users_of)
    manager.add(controller)
    capi.remotes.follow(controller.wake)

    def node_changed(cluster: Key, old: Unstructured | None, new: Unstructured | None) -> None:
        waits = new is not None and not initialised(new) and (old is None or initialised(old))
        if waits or _is_control_plane(old) != _is_control_plane(new):
            controller.wake(cluster)

    capi.remotes.on_node(node_changed)
    return controller


def _changed(old: Any, new: Any) -> bool:
    return old is None or new is None or _relevant_fields(old) != _relevant_fields(new)


def _relevant_fields(cluster: Cluster) -> tuple[Any, ...]:
    meta = cluster.metadata
    return (
        cluster.spec.paused,
        cluster.spec.infrastructure_ref,
        cluster.spec.control_plane_endpoint,
        meta.annotations,
        bool(meta.deletion_timestamp),
    )


def _spec_changed(old: Any, new: Any) -> bool:
    return old is None or new is None or old.spec != new.spec
