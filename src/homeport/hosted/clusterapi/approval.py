"""Serving certificates of kubelets: requests of Machines of the cluster are approved, others stay open."""

from __future__ import annotations

from collections.abc import Callable

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import Object, Resource, Unstructured
from homeport.api.steward.part import WorkerBootstrap
from homeport.capi.capi import Capi
from homeport.capi.remote.workload import Remote
from homeport.client.errors import ApiError, Conflict, NotFound
from homeport.client.protocol import Key, MergePatch, Write
from homeport.hosted.clusterapi.servingrequest import is_open, node_of, refuse
from homeport.runtime.cache import Cache, key_of
from homeport.runtime.clock import rfc3339
from homeport.runtime.event import Recorder
from homeport.runtime.outcome import Wait

REQUEST = Resource(
    "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False
)
# A Machine may not be known as a node yet when its kubelet asks.
RETRY_SECONDS = 15.0


class Approver:
    def __init__(self, capi: Capi, options: Write, recorder: Recorder, wake: Callable[[Key], None]) -> None:
        self._capi = capi
        self._options = Write(field_manager=options.field_manager)
        self._recorder = recorder
        self._wake = wake
        self._machines: Cache[Machine] = capi.manager.informers.get(Machine).cache
        self._watching: dict[Key, Remote] = {}

    def forget(self, key: Key) -> None:
        self._watching.pop(key, None)

    async def settle(self, plane: Object, cluster: Cluster, given: WorkerBootstrap | None) -> Wait | None:
        """Approves what can be. Wait, which nobody need see: when to look at what is open again."""
        remote = self._capi.remotes.get(key_of(cluster))
        if remote is None or (given is not None and not given.csr_approval.auto_approve):
            return None
        requests = self._watch(key_of(plane), remote)
        waiting = [each for each in requests if is_open(each)]
        subnets = given.allowed_subnets if given is not None else ()
        for each in waiting:
            why = refuse(each, self._of(cluster), subnets)
            try:
                if not why:
                    await self._approve(remote, each)
            except (Conflict, NotFound):
                continue
            except ApiError as error:
                why = str(error)
            if why:
                text = f"CertificateSigningRequest {each.name} of node {node_of(each) or '?'} is not approved: {why}"
                self._recorder.record(plane, "CertificateNotApproved", text, warning=True)
        if not waiting:
            return None
        return Wait("CertificatesWaiting", "requests of kubelets are open", after=RETRY_SECONDS, quiet=True)

    def _of(self, cluster: Cluster) -> list[Machine]:
        meta = cluster.metadata
        return [
            each
            for each in self._machines
            if each.metadata.namespace == meta.namespace and each.spec.cluster_name == meta.name
        ]

    def _watch(self, key: Key, remote: Remote) -> Cache[Unstructured]:
        if self._watching.get(key) is remote:
            return remote.watch(REQUEST)
        self._watching[key] = remote

        def changed(old: Unstructured | None, new: Unstructured | None) -> None:
            if old is None and new is not None and is_open(new):
                self._wake(key)

        return remote.watch(REQUEST, None, changed)

    async def _approve(self, remote: Remote, request: Unstructured) -> None:
        now = rfc3339(self._capi.manager.clock.now())
        verdict = {
            "type": "Approved",
            "status": "True",
            "reason": "MachineOfCluster",
            "message": "The names and addresses are those of the Machine.",
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        }
        held = (request.get("status") or {}).get("conditions") or []
        body = {
            "metadata": {"uid": request.uid, "resourceVersion": request.resource_version},
            "status": {"conditions": [*held, verdict]},
        }
        key = Key("", request.name)
        await remote.client.patch(REQUEST, key, MergePatch(body), self._options, subresource="approval")
