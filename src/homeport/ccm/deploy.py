"""Brings the cloud controller manager into workload clusters whose Nodes wait for one.

It leaves nothing behind that a Cluster would have to wait for: what it applies goes with the workload cluster.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource, Unstructured
from homeport.capi.capi import Capi
from homeport.capi.paused import is_paused
from homeport.capi.workload import Remote
from homeport.ccm.manifest import (
    DAEMON_SET,
    DEPLOYMENT,
    IMAGE,
    NAME,
    NAMESPACE,
    Settings,
    render,
)
from homeport.ccm.node import initialised
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Key, Query, Write
from homeport.infra.error import ProviderError, delay_of, policy_of
from homeport.infra.protocol import Sources
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller
from homeport.runtime.informer import metadata_only
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait

MANAGED = "ccm.homeport.dev/managed"  # "false": somebody else brings one
POOL = "ccm.homeport.dev/address-pool"  # addresses for Services of type LoadBalancer: FIRST-LAST or CIDR, by commas
_ANY = "cloud-controller-manager"
_WRITE = Write(field_manager="homeport")
_REFUSED_SECONDS = 30.0
_SECRET = metadata_only(Resource("", "v1", "Secret", "secrets"))
_CONFIG_MAP = metadata_only(Resource("", "v1", "ConfigMap", "configmaps"))


@dataclass(frozen=True, slots=True)
class Source:
    """How an infrastructure kind's clusters get theirs. `settings` raises ProviderError; `infra` is of `kind`."""

    kind: Any  # the type of the InfraCluster
    settings: Callable[[Any, Cluster], Awaitable[Settings]]
    sources: Callable[[Any], Sources]


class DeployReconciler:
    """Keyed by Cluster. What was applied is remembered; after a restart it is applied again, which changes nothing."""

    def __init__(self, manager: Manager, capi: Capi, sources: Mapping[str, Source], image: str = IMAGE) -> None:
        self._remotes = capi.remotes
        self._recorder = manager.recorder
        self._clusters = manager.informers.get(Cluster).cache
        self._infra = {kind: manager.informers.get(each.kind).cache for kind, each in sources.items()}
        self._sources = sources
        self._image = image
        self._applied: dict[Key, str] = {}
        self._failures: dict[Key, int] = {}

    async def reconcile(self, key: Key) -> Wait | None:
        cluster = self._clusters.get(key)
        remote = self._remotes.get(key)
        if cluster is None or not self._wanted(cluster):
            self._applied.pop(key, None)
            self._failures.pop(key, None)
            return None
        if remote is None:
            return None  # we are told when there is a connection
        try:
            wait = await self._bring(key, cluster, remote)
        except ProviderError as error:
            return self._trouble(key, cluster, policy_of(error).reason, error.message, error)
        except ApiError as error:
            message = f"the cloud controller manager can't be brought into the cluster: {error}"
            return self._trouble(key, cluster, "CloudControllerManagerNotApplied", message)
        self._failures.pop(key, None)
        return wait

    def _wanted(self, cluster: Cluster) -> bool:
        meta, ref = cluster.metadata, cluster.spec.infrastructure_ref
        return (
            ref is not None
            and ref.kind in self._sources
            and not meta.deletion_timestamp
            and not is_paused(cluster, cluster)
            and meta.annotations.get(MANAGED, "").lower() != "false"
        )

    async def _bring(self, key: Key, cluster: Cluster, remote: Remote) -> Wait | None:
        waiting = any(not initialised(node) for node in remote.nodes)
        if not waiting and key not in self._applied and not await _is_there(remote):
            return None  # nobody needs one
        if waiting and (other := await _other(remote)):
            await self._give_way(key, cluster, remote, other)
            return None
        assert cluster.spec.infrastructure_ref is not None
        kind = cluster.spec.infrastructure_ref.kind
        infra = self._infra[kind].get(Key(key.namespace, cluster.spec.infrastructure_ref.name))
        if infra is None:
            return None  # its coming wakes us
        settings = await self._sources[kind].settings(infra, cluster)
        await self._apply(key, cluster, remote, settings)
        return None

    async def _apply(self, key: Key, cluster: Cluster, remote: Remote, settings: Settings) -> None:
        objects = render(settings, self._image)
        # Nothing of a Secret is kept here but that it has changed.
        digest = hashlib.sha256(json.dumps([each for each, _ in objects], sort_keys=True).encode()).hexdigest()
        if self._applied.get(key) == digest:
            return
        for body, kind in objects:
            await remote.client.apply(body, _WRITE, kind=kind, force=True)
        if key not in self._applied:
            self._recorder.record(cluster, "CloudControllerManagerApplied", f"{NAME} looks after the cluster's Nodes")
        self._applied[key] = digest

    async def _give_way(self, key: Key, cluster: Cluster, remote: Remote, other: str) -> None:
        """Two of them would undo each other's work: ours goes."""
        self._applied.pop(key, None)
        if not await _is_there(remote):
            return
        try:
            await remote.client.delete(DEPLOYMENT, Key(NAMESPACE, NAME), propagation="Background")
        except NotFound:
            return
        self._recorder.record(cluster, "CloudControllerManagerRemoved", f"{other} looks after the cluster's Nodes")

    def _trouble(
        self, key: Key, cluster: Cluster, reason: str, message: str, error: ProviderError | None = None
    ) -> Wait:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        if count == 1:
            self._recorder.record(cluster, reason, message, warning=True)
        return Wait(reason, message, after=_REFUSED_SECONDS if error is None else delay_of(error, count))


async def _is_there(remote: Remote) -> bool:
    try:
        await remote.client.get(metadata_only(DEPLOYMENT), Key(NAMESPACE, NAME))
    except NotFound:
        return False
    return True


async def _other(remote: Remote) -> str:
    """A cloud controller manager that is not ours; '' if there is none."""
    for kind in (DEPLOYMENT, DAEMON_SET):
        page = await remote.client.list(metadata_only(kind), Query(namespace=NAMESPACE))
        for each in page.items:
            name = each.metadata.name
            if _ANY in name and name != NAME:
                return f"{kind.kind} {NAMESPACE}/{name}"
    return ""


def install(manager: Manager, capi: Capi, sources: Mapping[str, Source], image: str = IMAGE) -> Controller:
    """`sources` by the kind of the Cluster's infrastructureRef."""
    controller = Controller(
        "cloud-controller-manager", Cluster, DeployReconciler(manager, capi, sources, image), predicate=_news
    )
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
        for kind, source in sources.items():
            for infra in manager.informers.get(source.kind).cache:
                found = source.sources(infra)
                if key in (*found.secrets, *found.config_maps):
                    yield from of_infra(kind)(infra)

    for kind, source in sources.items():
        controller.map(source.kind, of_infra(kind), predicate=_spec_changed)
    controller.map(_SECRET, users_of).map(_CONFIG_MAP, users_of)
    manager.add(controller)
    capi.remotes.follow(controller.wake)

    def node_changed(cluster: Key, old: Unstructured | None, new: Unstructured | None) -> None:
        if new is not None and not initialised(new) and (old is None or initialised(old)):
            controller.wake(cluster)

    capi.remotes.on_node(node_changed)
    return controller


def _news(old: Any, new: Any) -> bool:
    return old is None or new is None or _read(old) != _read(new)


def _read(cluster: Cluster) -> tuple[Any, ...]:
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
