"""K0smotronControlPlane: the loop. It makes a k0smotron Cluster and tells Cluster API what becomes of it."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from ipaddress import ip_network
from typing import Any

import orjson

from homeport.api.cluster.v1beta2 import Cluster as CapiCluster
from homeport.api.k0smotron.v1beta2 import Cluster, K0smotronControlPlane
from homeport.api.meta import Unstructured, wire
from homeport.capi.capi import Capi
from homeport.capi.k0s import version as k0sversion
from homeport.capi.k0s.validation import API_VERSION
from homeport.capi.name import CLUSTER_NAME_LABEL, Condition
from homeport.capi.object.ownership import controller_of, owner_of_kind, owner_reference
from homeport.capi.reconciler import CapiReconciler
from homeport.capi.remote import pki
from homeport.capi.remote.pki import PkiError
from homeport.client.absence import find_object
from homeport.client.errors import ApiError
from homeport.client.protocol import Key, Query
from homeport.hosted.endpoint import parse_endpoint
from homeport.hosted.infracluster import publish_endpoint
from homeport.hosted.k0smotron import status
from homeport.hosted.k0smotron.host import Hosts
from homeport.hosted.k0smotron.name import (
    CONTROL_PLANE_FINALIZER,
    DROPPED_SERVICE_PREFIX,
    ENDPOINT_ANNOTATION,
    MANAGED_BY_K0SMOTRON,
    SPEC_HASH_ANNOTATION,
)
from homeport.hosted.k0smotron.pod.statefulset import CONTAINER
from homeport.hosted.k0smotron.pod.subject import DEFAULT_VERSION, Subject, part
from homeport.hosted.scope import HostedPlaneScope
from homeport.machinery.condition import find, is_true
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase
from homeport.runtime.workload.kind import POD

Json = dict[str, Any]

_RETRY_SECONDS = 30.0


class ControlPlaneScope(HostedPlaneScope[K0smotronControlPlane]):
    def __init__(self, obj: K0smotronControlPlane, cluster: CapiCluster | None, hosted: Cluster | None) -> None:
        super().__init__(obj, cluster)
        self.hosted = hosted  # the k0smotron Cluster, which has the Cluster's name

    @property
    def hosted_key(self) -> Key:
        return Key(self.key.namespace, self.cluster.metadata.name)


class K0smotronControlPlaneReconciler(CapiReconciler[K0smotronControlPlane, ControlPlaneScope]):
    controller_name = "k0smotroncontrolplane"
    kind = K0smotronControlPlane
    field_manager = "homeport-k0smotron-control-plane"
    condition = Condition.AVAILABLE
    finalizer = CONTROL_PLANE_FINALIZER

    def __init__(self, capi: Capi, hosts: Hosts) -> None:
        super().__init__(capi.manager)
        self._capi = capi
        self._hosts = hosts
        self._clusters = capi.manager.informers.get(CapiCluster).cache
        self._hosted = capi.manager.informers.get(Cluster).cache

    def load(self, obj: K0smotronControlPlane) -> ControlPlaneScope:
        owner = owner_of_kind(obj, CapiCluster.__resource__)
        if owner is None:
            return ControlPlaneScope(obj, None, None)
        key = Key(obj.metadata.namespace, owner["name"])
        return ControlPlaneScope(obj, self._clusters.get(key), self._hosted.get(key))

    def cluster_of(self, scope: ControlPlaneScope) -> CapiCluster | None:
        return scope.found_cluster

    def phases(self, scope: ControlPlaneScope) -> Sequence[Phase[ControlPlaneScope]]:
        if scope.found_cluster is None:
            return [self._release_without_cluster, self.drop_finalizer] if scope.deleting else [self._await_cluster]
        if scope.deleting:
            return [self._release, self.drop_finalizer]
        return [
            self.hold_finalizer,
            self._hold_certificates,
            self._hold_cluster,
            self._count,
            self._publish,
            self._await_available,
        ]

    def expected(self, scope: ControlPlaneScope, error: Exception) -> Wait | None:
        if isinstance(error, PkiError):
            return Wait("CertificatesUnusable", str(error), after=_RETRY_SECONDS, warning=True)
        return None

    # -- phases ------------------------------------------------------------------------------------------------

    async def _await_cluster(self, scope: ControlPlaneScope) -> Wait | None:
        owner = owner_of_kind(scope.object, CapiCluster.__resource__)
        name = f"Cluster {owner['name']} does not exist" if owner is not None else "no Cluster refers to it"
        return Wait("WaitingForCluster", f"{name}: set spec.controlPlaneRef of a Cluster to this K0smotronControlPlane")

    async def _hold_certificates(self, scope: ControlPlaneScope) -> Wait | None:
        """Before the k0smotron Cluster, so that they belong to the control plane. Later they are left alone."""
        scope.object.status.external_managed_control_plane = True
        if scope.hosted is None and not scope.object.spec.certificate_refs:
            await pki.ensure(
                self.client,
                scope.hosted_key,
                owner=owner_reference(scope.object, controller=True),
                now=self.clock.now(),
                options=self._write,
            )
        return None

    async def _hold_cluster(self, scope: ControlPlaneScope) -> Wait | None:
        held = scope.hosted
        if held is not None:
            owner = controller_of(held)
            if owner is None or owner["uid"] != scope.object.metadata.uid:
                text = (
                    f"k0smotron Cluster {scope.hosted_key} exists and does not belong to this control plane: delete "
                    "it, or name the Cluster differently"
                )
                return Wait("OwnedByAnother", text, after=_RETRY_SECONDS, warning=True)
        body = render_cluster(scope.object, scope.cluster)
        if held is not None and _digest(held.metadata.annotations) == _digest(body["metadata"]["annotations"]):
            return None
        written = await self.client.apply(body, self._write, kind=Cluster.__resource__, force=True)
        if held is None:
            key, digest = scope.hosted_key, _digest(body["metadata"]["annotations"])
            del written
            return Wait("WaitingForControlPlane", f"k0smotron Cluster {key} was created (spec {digest})", quiet=True)
        return None

    async def _count(self, scope: ControlPlaneScope) -> Wait | None:
        assert scope.hosted is not None
        own, held = scope.object.status, scope.hosted.status
        own.replicas, own.ready_replicas, own.up_to_date_replicas = (
            held.replicas,
            held.ready_replicas,
            held.updated_replicas,
        )
        functional = is_true(held.conditions, status.FUNCTIONAL)
        own.available_replicas = held.ready_replicas if functional else 0
        own.selector = held.selector
        if functional:
            own.initialization.control_plane_initialized = True
        version = lowest_version(await self._pods(scope))
        if version is not None:
            wanted = scope.object.spec.version or DEFAULT_VERSION
            # In the words of the spec, where it is the same: others compare the two as texts.
            own.version = wanted if version == k0sversion.parse(wanted) else str(version)
        return None

    async def _pods(self, scope: ControlPlaneScope) -> list[Unstructured]:
        assert scope.hosted is not None
        try:
            host = await self._hosts.find(scope.hosted, create=False)
            if host is None or isinstance(host, Wait):
                return []
            selector = Subject.of(scope.hosted, host.owner).pod_selector
            query = Query(
                namespace=scope.key.namespace, labels=",".join(f"{name}={value}" for name, value in selector.items())
            )
            return list((await host.client.list(POD, query)).items)
        except ApiError:
            return []  # the k0smotron Cluster says what is wrong

    async def _publish(self, scope: ControlPlaneScope) -> Wait | None:
        assert scope.hosted is not None
        found = parse_endpoint(scope.hosted.metadata.annotations.get(ENDPOINT_ANNOTATION, ""))
        if found is None:
            return _reason(scope.hosted, status.EXPOSED, "WaitingForControlPlaneEndpoint", "it has no address yet")
        return await publish_endpoint(
            self._capi, self.client, scope.cluster, found, self._write, managed_by=MANAGED_BY_K0SMOTRON
        )

    async def _await_available(self, scope: ControlPlaneScope) -> Wait | None:
        assert scope.hosted is not None
        if is_true(scope.hosted.status.conditions, status.AVAILABLE):
            return None
        return _reason(scope.hosted, status.AVAILABLE, "WaitingForControlPlane", "it is not available yet")

    # -- deletion ----------------------------------------------------------------------------------------------

    async def _release(self, scope: ControlPlaneScope) -> Wait | None:
        return await self._release_hosted(scope.object, scope.hosted_key)

    async def _release_without_cluster(self, scope: ControlPlaneScope) -> Wait | None:
        owner = owner_of_kind(scope.object, CapiCluster.__resource__)
        if owner is None:
            return None
        return await self._release_hosted(scope.object, Key(scope.key.namespace, owner["name"]))

    async def _release_hosted(self, control_plane: K0smotronControlPlane, key: Key) -> Wait | None:
        held = await find_object(self.client, Cluster, key)
        if held is None:
            return None
        owner = controller_of(held)
        if owner is None or owner["uid"] != control_plane.metadata.uid:
            return None
        if not held.metadata.deletion_timestamp:
            await self.client.delete(Cluster, key, uid=held.metadata.uid)
        return Wait("DeletingControlPlane", f"waiting for k0smotron Cluster {key} to be deleted", after=_RETRY_SECONDS)


def _reason(hosted: Cluster, kind: str, reason: str, message: str) -> Wait:
    """What the k0smotron Cluster itself waits for."""
    name = f"k0smotron Cluster {hosted.metadata.name}"
    found = find(hosted.status.conditions, kind)
    if found is None or found.get("status") == "True":
        return Wait(reason, f"{name}: {message}")
    return Wait(str(found.get("reason") or reason), f"{name}: {found.get('message') or message}")


# -- rendering -----------------------------------------------------------------------------------------------------


def render_cluster(control_plane: K0smotronControlPlane, cluster: CapiCluster) -> Json:
    """The k0smotron Cluster of a control plane. Its address is found by its own controller."""
    spec: Json = wire(control_plane.spec)
    if not control_plane.spec.external_address:
        spec.pop("externalAddress", None)
    config = with_network(control_plane.spec.k0s_config, cluster)
    if config is not None:
        spec["k0sConfig"] = config
    kept = {
        name: value
        for name, value in control_plane.metadata.annotations.items()
        if name.startswith(DROPPED_SERVICE_PREFIX)
    }
    digest = hashlib.sha256(orjson.dumps([spec, kept], option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
    resource = Cluster.__resource__
    return {
        **resource.type_meta,
        "metadata": {
            "name": cluster.metadata.name,
            "namespace": cluster.metadata.namespace,
            "labels": {CLUSTER_NAME_LABEL: cluster.metadata.name},
            "annotations": {**kept, SPEC_HASH_ANNOTATION: digest},
            "ownerReferences": [owner_reference(control_plane, controller=True)],
        },
        "spec": spec,
    }


def _digest(annotations: Any) -> str:
    return str(annotations.get(SPEC_HASH_ANNOTATION, ""))


def with_network(config: Json | None, cluster: CapiCluster) -> Json | None:
    """k0s' configuration with the network of the Cluster, where it says nothing else."""
    network = cluster.spec.cluster_network
    wanted: Json = {}
    dual: Json = {}
    for field, ranges in (("pod", network.pods.cidr_blocks), ("service", network.services.cidr_blocks)):
        for each in ranges:
            if ip_network(each, strict=False).version == 4 or len(ranges) == 1:
                wanted.setdefault(f"{field}CIDR", each)
            else:
                dual.setdefault(f"IPv6{field}CIDR", each)
    if dual:
        wanted["dualStack"] = {"enabled": True, **dual}
    if network.service_domain:
        wanted["clusterDomain"] = network.service_domain
    if not wanted:
        return config
    made = copy.deepcopy(config) if config else {}
    made.setdefault("apiVersion", API_VERSION)
    made.setdefault("kind", "ClusterConfig")
    spec = made["spec"] = part(made, "spec")
    spec["network"] = {**wanted, **part(spec, "network")}
    return made


def lowest_version(pods: Sequence[Unstructured]) -> k0sversion.K0sVersion | None:
    """Of what runs, by the tags of the images."""
    found = []
    for pod in pods:
        for each in (pod.get("spec") or {}).get("containers") or ():
            tag = str(each.get("image", "")).rpartition(":")[2]
            if each.get("name") == CONTAINER and k0sversion.is_valid(tag):
                found.append(k0sversion.parse(tag))
    return min(found, default=None)
