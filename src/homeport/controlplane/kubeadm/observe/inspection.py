"""Looks into the workload cluster: Nodes and Pods by watch, etcd by asking, no more often than it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.capi.capi import Capi
from homeport.capi.remote.workload import Remote
from homeport.client.protocol import Key, Query
from homeport.controlplane.kubeadm.desired import etcd_managed
from homeport.controlplane.kubeadm.etcd.inspector import Inspector
from homeport.controlplane.kubeadm.observe.absence import known_as
from homeport.controlplane.kubeadm.observe.health import CONTROL_PLANE_ROLE, EtcdView, Seen
from homeport.controlplane.kubeadm.observe.reader import is_unhealthy, node_of
from homeport.controlplane.kubeadm.scope import ControlPlaneScope
from homeport.controlplane.kubeadm.workload.upkeep import SYSTEM, observe_configuration
from homeport.runtime.outcome import Wait

POD = Resource("", "v1", "Pod", "pods")
_POD_METADATA = ("name", "namespace", "uid", "resourceVersion")
_POD_LISTS = {"conditions": ("type", "status"), "containerStatuses": ("name", "state", "lastState")}
STATIC_PODS = Query(namespace=SYSTEM, labels="tier=control-plane")
GRACE_SECONDS = 50.0  # etcd may be silent for so long before that is reported
LOST_SECONDS = 300.0  # without an answer for so long, what was known is worth nothing
_FRESH_SECONDS = 1.0  # an answer of trouble is good for so long ...
_GOOD_SECONDS = 10.0  # ... and one of health
_KEPT_SECONDS = 600.0

State = tuple[str, Any]


class Inspection:
    def __init__(self, capi: Capi, inspector: Inspector, wake: Callable[[Key], None]) -> None:
        self.inspector = inspector
        self._wake = wake  # the control plane of a cluster
        self._capi = capi
        self._clock = capi.clock
        self._views: dict[Key, tuple[float, tuple[str, ...], EtcdView]] = {}
        self._answered: dict[Key, float] = {}  # when etcd last told its members; at first, when it was first asked
        self._changed: dict[Key, float] = {}  # when the way to the cluster was lost, or was there again
        self._handlers: dict[Key, Callable[[Any, Any], None]] = {}
        # For which state, and when, something in the cluster was looked after.
        self._kept: dict[Key, dict[str, tuple[State, float]]] = {}
        capi.remotes.follow(self._connection_changed)
        capi.remotes.on_node(self._node_changed)

    # -- what wakes us -----------------------------------------------------------------------------------------

    def _connection_changed(self, cluster: Key) -> None:
        self._kept.pop(cluster, None)
        if cluster in self._answered:  # it is also called for clusters of other kinds, and after the last look
            self._changed[cluster] = self._clock.now()
        self._wake(cluster)

    def _node_changed(self, cluster: Key, old: Unstructured | None, new: Unstructured | None) -> None:
        if _is_control_plane(old) or _is_control_plane(new):
            if old is None or new is None or _relevant(old) != _relevant(new):
                self._wake(cluster)

    def _pod_handler(self, cluster: Key) -> Callable[[Any, Any], None]:
        def changed(old: Unstructured | None, new: Unstructured | None) -> None:
            if old is None or new is None or _pod_state(old) != _pod_state(new):
                self._wake(cluster)

        return self._handlers.setdefault(cluster, changed)

    def forget(self, cluster: Key) -> None:
        self._views.pop(cluster, None)
        self._answered.pop(cluster, None)
        self._changed.pop(cluster, None)
        self._handlers.pop(cluster, None)
        self._kept.pop(cluster, None)
        self._capi.members.forget(cluster)
        self.inspector.forget(cluster)

    # -- looking -----------------------------------------------------------------------------------------------

    async def look(self, scope: ControlPlaneScope) -> Wait | None:
        cluster = scope.cluster_key
        remote = self._capi.remotes.get(cluster)
        # A control plane machine that goes takes the API with it for seconds, until another has the address.
        scope.findings.brief = scope.now - self._answered.setdefault(cluster, scope.now) < GRACE_SECONDS
        if remote is None:
            scope.seen = Seen(down=self._down(cluster), lost=self._is_lost(scope))
            scope.findings.down = scope.seen.down
            scope.findings.lost = scope.seen.lost
            return None
        scope.remote = remote
        remote.watch(POD, STATIC_PODS, self._pod_handler(cluster), slim=_slim_pod)
        pods = await remote.cached(POD, STATIC_PODS)
        if not scope.findings.initialized and _may_be_initialized(scope):
            scope.configuration = await observe_configuration(remote.client)
            scope.findings.initialized = scope.configuration is not None
        scope.seen = Seen(
            nodes={node.name: node for node in remote.nodes},
            pods={pod.name: pod for pod in pods},
            etcd=await self._etcd(scope, remote, max_age=None),
        )
        scope.findings.etcd = scope.seen.etcd
        return None

    def attend(self, scope: ControlPlaneScope, *, closely: bool) -> None:
        """Whether Pods that change must be known at once. At rest they are known within a minute."""
        if scope.remote is not None:
            scope.remote.attend(POD, STATIC_PODS, closely=closely)

    async def refresh(self, scope: ControlPlaneScope) -> bool:
        """Looks once more at what is not of this very moment. True: something was asked."""
        if scope.remote is None:
            return False
        known = self._views.get(scope.cluster_key)
        pods = scope.remote.is_at_rest(POD, STATIC_PODS)
        etcd = self._asks(scope) and (known is None or known[0] < scope.now)
        if pods:
            found = await scope.remote.cached(POD, STATIC_PODS, max_age=0.0)
            scope.seen = replace(scope.seen, pods={pod.name: pod for pod in found})
        if etcd:
            scope.seen = replace(scope.seen, etcd=await self._etcd(scope, scope.remote, max_age=0.0))
            scope.findings.etcd = scope.seen.etcd
        return pods or etcd

    def _asks(self, scope: ControlPlaneScope) -> bool:
        return etcd_managed(scope.kcp) and scope.findings.initialized

    async def _etcd(self, scope: ControlPlaneScope, remote: Remote, *, max_age: float | None) -> EtcdView:
        if not self._asks(scope):
            return EtcdView(error="the cluster is not initialized yet")
        authority = scope.certificates.get("etcd")
        if authority is None or not authority.key:
            return EtcdView(
                error=f"etcd can't be reached: Secret {scope.cluster_key.name}-etcd is missing or has no key"
            )
        nodes = tuple(sorted(_etcd_nodes(scope, remote)))
        known = self._views.get(scope.cluster_key)
        if known is not None and known[1] == nodes and not self._is_out(scope.cluster_key, known[0], known[2]):
            limit = _age_limit(known[2], nodes) if max_age is None else max_age
            if self._clock.now() - known[0] < limit:
                return known[2]
        asked = self._clock.now()
        view = await self.inspector.look(scope.cluster_key, remote, authority, nodes, lasting=_is_news(scope))
        self._views[scope.cluster_key] = (asked, nodes, view)
        if view.members is not None:
            texts = (text for each in view.members for text in known_as(each))
            self._capi.members.note(scope.cluster_key, asked, texts)
            self._answered[scope.cluster_key] = asked
        return view

    def _is_out(self, cluster: Key, asked: float, view: EtcdView) -> bool:
        """It could not be asked, and the way to it was the reason."""
        return view.members is None and asked <= self._changed.get(cluster, 0.0)

    def _down(self, cluster: Key) -> str:
        why = self._capi.remotes.why(cluster) or "it is not connected"
        return f"the workload cluster can't be reached: {why}"

    def _is_lost(self, scope: ControlPlaneScope) -> bool:
        since = self._capi.remotes.silent_since(scope.cluster_key)
        return scope.findings.initialized and since is not None and scope.now - since >= LOST_SECONDS

    # -- what kubeadm put there --------------------------------------------------------------------------------

    def is_kept(self, scope: ControlPlaneScope, what: str) -> bool:
        """It was looked after a moment ago, for this state of the object, over this connection. Others change it, too:
        it is looked at again now and then."""
        state, at = self._kept.get(scope.cluster_key, {}).get(what, (None, 0.0))
        return state == _state(scope) and 0 <= scope.now - at < _KEPT_SECONDS

    def keep(self, scope: ControlPlaneScope, what: str) -> None:
        self._kept.setdefault(scope.cluster_key, {})[what] = (_state(scope), scope.now)


def _state(scope: ControlPlaneScope) -> State:
    meta = scope.kcp.metadata
    return meta.uid, (meta.generation, tuple(sorted(meta.annotations.items())))


def _is_news(scope: ControlPlaneScope) -> bool:
    """The object was changed: Machines may have to be replaced, and then etcd is asked often."""
    return (scope.kcp.status.observed_generation or 0) < scope.kcp.metadata.generation


def _age_limit(view: EtcdView, nodes: tuple[str, ...]) -> float:
    well = view.members is not None and not view.problems and not view.alarms and len(view.members) == len(nodes)
    return _GOOD_SECONDS if well and not any(each.learner for each in view.members or ()) else _FRESH_SECONDS


def _etcd_nodes(scope: ControlPlaneScope, remote: Remote) -> list[str]:
    """Of our Machines, and of control planes whose Machines are missing: their members count for the quorum, too."""
    found = {node_of(each.machine, remote) for each in scope.owned}
    if all(node and Key("", node) in remote.nodes for node in found):
        found |= {node.name for node in remote.nodes if _is_control_plane(node)}
    return [node for node in found if node and Key("", node) in remote.nodes]


def _may_be_initialized(scope: ControlPlaneScope) -> bool:
    """A single Machine that is about to be replaced may still finish: the next one would find itself unable to join."""
    if len(scope.owned) != 1:
        return True
    machine = scope.owned[0].machine
    return not machine.metadata.deletion_timestamp and not is_unhealthy(machine)


def _is_control_plane(node: Unstructured | None) -> bool:
    return node is not None and CONTROL_PLANE_ROLE in (node.metadata.get("labels") or {})


def _relevant(node: Unstructured) -> tuple[Any, ...]:
    """Heartbeats change Nodes all the time."""
    spec, status = node.get("spec") or {}, node.get("status") or {}
    conditions = [(each.get("type"), each.get("status")) for each in status.get("conditions") or ()]
    return node.metadata.get("labels"), spec.get("taints"), spec.get("providerID"), conditions


def _slim_pod(pod: Unstructured) -> Unstructured:
    """What is read of a static Pod: its manifest, which is most of it, is the Machine's business."""
    status = pod.get("status") or {}
    parts = {name: [_only(each, fields) for each in status.get(name) or ()] for name, fields in _POD_LISTS.items()}
    pod["status"] = {"phase": status.get("phase"), **parts}
    pod["metadata"] = _only(pod.metadata, _POD_METADATA)
    pod.pop("spec", None)
    return pod


def _only(found: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    return {name: found[name] for name in fields if name in found}


def _pod_state(pod: Unstructured) -> tuple[Any, ...]:
    status = pod.get("status") or {}
    conditions = [(each.get("type"), each.get("status")) for each in status.get("conditions") or ()]
    states = [(each.get("name"), each.get("state")) for each in status.get("containerStatuses") or ()]
    return pod.uid, status.get("phase"), conditions, states
