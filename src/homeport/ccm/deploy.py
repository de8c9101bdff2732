"""Brings the cloud controller manager to workload clusters whose Nodes wait for one: into the cluster, or, for clusters
with hosted control planes, beside their control plane.

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
from homeport.capi.cloud import CloudSupport
from homeport.capi.object.paused import is_paused
from homeport.capi.remote.workload import Remote
from homeport.capi.sourceindex import SourceIndex
from homeport.ccm.cloud import ConfiguredCloud
from homeport.ccm.host import CloudHost, Hosted
from homeport.ccm.manifest import (
    DAEMON_SET,
    DEPLOYMENT,
    IMAGE,
    NAME,
    NAMESPACE,
    SERVICE_ACCOUNT,
    Settings,
    remove,
    render,
)
from homeport.ccm.node import initialised, was_initialised
from homeport.ccm.placement import is_control_plane, is_hosted, runs_on_workers
from homeport.client.dial import DIRECT, DialOptions
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
_ANY = "cloud-controller-manager"
_WRITE = Write(field_manager="homeport")
_REFUSED_SECONDS = 30.0
_REPLACED_SECONDS = 30.0
_AGAIN_SECONDS = 600.0
_FRESH_SECONDS = 10.0
_LOOK_SECONDS = 75.0  # the least between two lists of Deployments: with every third renewal of the watch of Nodes
_LATER = Wait("Watching", "the applied objects are checked periodically", after=_AGAIN_SECONDS, quiet=True)
_DEPLOYMENTS = Query(namespace=NAMESPACE)
_BY_INFRA = "ccm.infrastructure"
_SECRET = metadata_only(Resource("", "v1", "Secret", "secrets"))
_CONFIG_MAP = metadata_only(Resource("", "v1", "ConfigMap", "configmaps"))


@dataclass(frozen=True, slots=True)
class _Applied:
    digest: str
    sent_at: float  # by the clock that never jumps


class DeployReconciler:
    """Keyed by Cluster. Deployments of the workload cluster are watched while a Node waits to be initialised, and else
    listed every 90 seconds, so one that is deleted comes back; all other objects are applied again now and then, which
    changes nothing that is as it should be."""

    def __init__(self, manager: Manager, capi: Capi, clouds: Mapping[str, ConfiguredCloud], image: str = "") -> None:
        self._capi = capi
        self._remotes = capi.remotes
        self._host = CloudHost(manager)
        self._clean: set[Key] = set()  # hosted control planes whose clusters have nothing of ours
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
        self.controller = _Controller("cloud-controller-manager", Cluster, self, self._host)

    async def reconcile(self, key: Key) -> Wait | None:
        cluster = self._clusters.get(key)
        remote = self._remotes.get(key)
        if cluster is None or not self._wanted(cluster):
            self._applied.pop(key, None)
            self._foreign.pop(key, None)
            self._failures.pop(key, None)
            self._handlers.pop(key, None)
            self._clean.discard(key)
            await self._host.stop(key)
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
        hosted = await is_hosted(self._capi, cluster, self.controller)
        if hosted is None:
            return None  # its control plane wakes us
        remote.watch(DEPLOYMENT, _DEPLOYMENTS, self._handler(key), slim=_slim)
        deployments = await remote.cached(DEPLOYMENT, _DEPLOYMENTS, max_age=_FRESH_SECONDS)
        waiting = _attend(remote)
        there = Key(NAMESPACE, NAME) in deployments
        if hosted:
            await self._withdraw(key, remote, there=there)
        if other := await _other(remote, deployments):
            self._foreign[key] = None
            if there or self._host.runs(key):
                await self._give_way(key, cluster, remote, other)
            return _LATER
        if not waiting and not await self._known(key, remote, there=there, hosted=hosted):
            return None  # no Node needs one
        if not waiting and (wait := self._await_another(key)):
            return wait
        assert cluster.spec.infrastructure_ref is not None
        kind = cluster.spec.infrastructure_ref.kind
        infra = self._infra[kind].get(Key(key.namespace, cluster.spec.infrastructure_ref.name))
        if infra is None:
            return None  # its coming wakes us
        if hosted:
            await self._run_here(key, cluster, remote, await self._clouds[kind].hosted(infra, cluster))
        else:
            settings = await self._clouds[kind].settings(infra, cluster)
            settings = replace(settings, workers=runs_on_workers(cluster, remote.nodes))
            await self._apply(key, cluster, remote, settings, there=there)
        self._foreign.pop(key, None)
        return _LATER

    async def _known(self, key: Key, remote: Remote, *, there: bool, hosted: bool) -> bool:
        """Whether the cluster has, or once had, a cloud controller manager."""
        if hosted:
            return key in self._foreign or any(was_initialised(node) for node in remote.nodes)
        return there or key in self._foreign or key in self._applied or await _was_here(remote)

    async def _run_here(self, key: Key, cluster: Cluster, remote: Remote, wanted: Hosted) -> None:
        if await self._host.ensure(key, remote, wanted):
            text = "the cloud controller manager of the cluster runs beside its control plane"
            self._recorder.record(cluster, "CloudControllerManagerStarted", text)

    async def _withdraw(self, key: Key, remote: Remote, *, there: bool) -> None:
        """Earlier releases put ours, with the vendor's credentials, into clusters with hosted control planes, too."""
        if there or (key not in self._clean and await _was_here(remote)):
            await remove(remote.client)
        self._clean.add(key)

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
        if there and known is not None and known.digest == digest and now - known.sent_at < _AGAIN_SECONDS / 2:
            return
        for body, kind in objects:
            await remote.client.apply(body, _WRITE, kind=kind, force=True)
        if not there:
            self._recorder.record(cluster, "CloudControllerManagerApplied", f"{NAME} manages the cluster's Nodes")
        self._applied[key] = _Applied(digest, now)

    async def _give_way(self, key: Key, cluster: Cluster, remote: Remote, other: str) -> None:
        """Two of them would undo each other's work: ours goes."""
        self._applied.pop(key, None)
        if self._host.runs(key):
            await self._host.stop(key)
        else:
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


class _Controller(Controller):
    """What is hosted for a Cluster goes with the right to work on it."""

    def __init__(self, name: str, kind: type[Cluster], reconciler: DeployReconciler, host: CloudHost) -> None:
        super().__init__(name, kind, reconciler, predicate=_changed)
        self._host = host

    async def let_go(self) -> None:
        await super().let_go()
        await self._host.stop_others(self.mine)


def _slim(deployment: Unstructured) -> Unstructured:
    """Only names are read."""
    for part in ("spec", "status"):
        deployment.pop(part, None)
    return deployment


def _attend(remote: Remote) -> bool:
    """Whether a Node waits to be initialised. If not, a Deployment that changes may be noticed later."""
    waiting = any(not initialised(node) for node in remote.nodes)
    remote.attend(DEPLOYMENT, _DEPLOYMENTS, closely=waiting, every=_LOOK_SECONDS)
    return waiting


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


def install(
    manager: Manager, capi: Capi, supports: Iterable[CloudSupport], image: str = "", dial: DialOptions = DIRECT
) -> Controller:
    """`image` is that of the cloud controller manager; '': the one of this release. `dial`: how vendors are dialled."""
    clouds = {each.kind.__resource__.kind: ConfiguredCloud(manager, each, dial) for each in supports}
    reconciler = DeployReconciler(manager, capi, clouds, image)
    controller = reconciler.controller
    clusters = manager.informers.get(Cluster).cache
    clusters.add_index(_BY_INFRA, _infrastructure_of)
    users = {
        kind: SourceIndex(manager.informers.get(cloud.kind).cache, "ccm.sources", cloud.sources)
        for kind, cloud in clouds.items()
    }

    def of_key(kind: str, infra: Key) -> Iterable[Key]:
        return (key_of(cluster) for cluster in clusters.by(_BY_INFRA, f"{kind} {infra}"))

    def of_infra(kind: str) -> Callable[[Any], Iterable[Key]]:
        return lambda infra: of_key(kind, key_of(infra))

    def users_of(obj: Any) -> Iterable[Key]:
        """Clusters whose connection is made of this Secret or ConfigMap."""
        for kind, index in users.items():
            for infra in index.users(key_of(obj)):
                yield from of_key(kind, infra)

    for kind, cloud in clouds.items():
        controller.map(cloud.kind, of_infra(kind), predicate=_spec_changed)
    controller.map(_SECRET, users_of).map(_CONFIG_MAP, users_of)
    manager.add(controller)
    capi.remotes.follow(controller.wake)

    def node_changed(cluster: Key, old: Unstructured | None, new: Unstructured | None) -> None:
        waits = new is not None and not initialised(new)
        waited = old is not None and not initialised(old)
        if (waits and not waited) or is_control_plane(old) != is_control_plane(new):
            controller.wake(cluster)
        elif waited and not waits and (remote := capi.remotes.get(cluster)) is not None:
            _attend(remote)

    capi.remotes.on_node(node_changed)
    return controller


def _infrastructure_of(cluster: Cluster) -> Iterable[str]:
    ref = cluster.spec.infrastructure_ref
    return () if ref is None else (f"{ref.kind} {Key(cluster.metadata.namespace, ref.name)}",)


def _changed(old: Any, new: Any) -> bool:
    return old is None or new is None or _relevant_fields(old) != _relevant_fields(new)


def _relevant_fields(cluster: Cluster) -> tuple[Any, ...]:
    meta = cluster.metadata
    return (
        cluster.spec.paused,
        cluster.spec.infrastructure_ref,
        cluster.spec.control_plane_ref,
        cluster.spec.control_plane_endpoint,
        meta.annotations,
        bool(meta.deletion_timestamp),
    )


def _spec_changed(old: Any, new: Any) -> bool:
    return old is None or new is None or old.spec != new.spec
