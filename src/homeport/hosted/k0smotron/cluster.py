"""k0smotron Cluster: the loop."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster as CapiCluster
from homeport.api.k0smotron.v1beta2 import Cluster
from homeport.api.meta import Resource, Unstructured
from homeport.capi.capi import Capi
from homeport.capi.k0s.dynamic import follow
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.capi.object.ownership import controller_of, owner_reference
from homeport.capi.reconciler import CapiReconciler
from homeport.capi.remote import kubeconfig
from homeport.capi.remote.pki import SECRET, PkiError
from homeport.capi.remote.visit import connected
from homeport.capi.remote.workload import NAMESPACE, NODE
from homeport.client.absence import find_object
from homeport.client.config import ConfigError
from homeport.client.errors import ApiError
from homeport.client.protocol import Key, MergePatch
from homeport.hosted import endpoint as endpoints
from homeport.hosted.endpoint import Endpoint, Pending
from homeport.hosted.k0smotron import status
from homeport.hosted.k0smotron.certificate import ETCD_CLIENT, PROXY, Certificates, render_secret
from homeport.hosted.k0smotron.deletion import REMOTE_SECONDS, Deletion
from homeport.hosted.k0smotron.host import CONFIG_MAP, Hosts
from homeport.hosted.k0smotron.name import ENDPOINT_ANNOTATION, FINALIZER
from homeport.hosted.k0smotron.object import CRON_JOB, INGRESS, HostObjects, selected
from homeport.hosted.k0smotron.pod.config import dynamic_spec, render_config, render_config_map, static_digest
from homeport.hosted.k0smotron.pod.entrypoint import render_entrypoint
from homeport.hosted.k0smotron.pod.etcd import plan_members, render_defrag, render_etcd, render_etcd_service
from homeport.hosted.k0smotron.pod.ingress import (
    render_ingress,
    render_ingress_certificates,
    render_ingress_manifests,
)
from homeport.hosted.k0smotron.pod.monitoring import render_monitoring
from homeport.hosted.k0smotron.pod.nats import render_nats_service, render_nats_token
from homeport.hosted.k0smotron.pod.patch import PatchFailed
from homeport.hosted.k0smotron.pod.service import TYPES, endpoint_of, render_endpoint_manifest, render_service
from homeport.hosted.k0smotron.pod.statefulset import render_statefulset, render_telemetry
from homeport.hosted.k0smotron.pod.subject import Subject
from homeport.hosted.k0smotron.pod.trouble import pod_trouble
from homeport.hosted.k0smotron.scope import ClusterScope
from homeport.hosted.k0smotron.status import ConditionReport, Pods
from homeport.hosted.ownership import NameTaken, is_ours
from homeport.runtime.clock import parse_time, rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase
from homeport.runtime.workload.kind import POD, SERVICE, STATEFUL_SET

Json = dict[str, Any]

MANAGER = "homeport-k0smotron"
SYSTEM = Key("", "kube-system")
CLUSTER_CONFIG = Resource("k0s.k0sproject.io", "v1beta1", "ClusterConfig", "clusterconfigs")

ADDRESS_SECONDS = 15.0
PROBE_SECONDS = 5.0
STABLE_SECONDS = 120.0
_RETRY_SECONDS = 30.0
_LATE_SECONDS = 20.0  # which a cluster takes at most to begin with a Pod


class ClusterReconciler(CapiReconciler[Cluster, ClusterScope]):
    controller_name = "k0smotron-cluster"
    kind = Cluster
    field_manager = MANAGER
    condition = status.AVAILABLE
    finalizer = FINALIZER

    def __init__(self, capi: Capi) -> None:
        super().__init__(capi.manager)
        self._capi = capi
        self.hosts = Hosts(capi, self.client, self._write)
        self._certificates = Certificates(self.client, self._write)
        self._clusters = capi.manager.informers.get(CapiCluster).cache
        self._objects = HostObjects(self._write, self.clock)
        self._deletion = Deletion(self.client, self.hosts, self._objects, self._say)
        capi.manager.job(self.hosts.hold)

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._objects.forget(key)

    def load(self, obj: Cluster) -> ClusterScope:
        return ClusterScope(obj, self.clock.now())

    def cluster_of(self, scope: ClusterScope) -> CapiCluster | None:
        name = scope.object.metadata.labels.get(CLUSTER_NAME_LABEL, "")
        return self._clusters.get(Key(scope.key.namespace, name)) if name else None

    def phases(self, scope: ClusterScope) -> Sequence[Phase[ClusterScope]]:
        if scope.deleting:
            return [*self._deletion.phases, self.drop_finalizer]
        return [
            self.hold_finalizer,
            self._await_host,
            self._observe,
            self._hold_service,
            self._hold_certificates,
            self._hold_storage,
            self._await_endpoint,
            self._hold_files,
            self._await_etcd,
            self._hold_pods,
            self._hold_kubeconfig,
            self._await_pods,
            self._await_api,
            self._await_rollout,
        ]

    def expected(self, scope: ClusterScope, error: Exception) -> Wait | None:
        if isinstance(error, NameTaken):
            return Wait("OwnedByAnother", str(error), after=_RETRY_SECONDS, warning=True)
        if isinstance(error, PatchFailed):
            return Wait("PatchFailed", str(error), warning=True)
        if isinstance(error, ApiError) and scope.host is not None and scope.host.remote:
            return Wait("HostClusterUnreachable", str(error), after=_RETRY_SECONDS, warning=True)
        return None

    # -- writing -----------------------------------------------------------------------------------------------

    def _say(self, scope: ClusterScope, verdict: ConditionReport) -> None:
        kind, said, reason, message = verdict
        scope.report(kind, said, reason, message, rfc3339(self.clock.now()))

    # -- phases ------------------------------------------------------------------------------------------------

    async def _await_host(self, scope: ClusterScope) -> Wait | None:
        host = await self.hosts.find(scope.object, create=True)
        if host is None or isinstance(host, Wait):
            return host
        scope.host = host
        scope.subject = Subject.of(scope.object, host.owner)
        if host.remote:
            scope.timer = Wait("PodsNotWatched", after=REMOTE_SECONDS, quiet=True)
        return None

    async def _observe(self, scope: ClusterScope) -> Wait | None:
        names = scope.subject.names
        scope.statefulset = await self._objects.find_own(scope, STATEFUL_SET, names.statefulset)
        if scope.subject.storage == "etcd":
            scope.etcd = await self._objects.find_own(scope, STATEFUL_SET, names.etcd)
        self._count(scope)
        self._say(scope, ConditionReport(status.DELETING, "False", "NotDeleting"))
        return None

    def _count(self, scope: ClusterScope) -> None:
        pods = None if scope.statefulset is None else Pods.of(scope.statefulset)
        status.fill_counts(scope.object, scope.subject, pods)
        self._say(scope, status.scaling(pods, scope.subject.spec.replicas))
        self._say(scope, status.up_to_date(pods, scope.subject.spec.replicas))

    async def _hold_service(self, scope: ClusterScope) -> Wait | None:
        subject = scope.subject
        scope.service = await self._objects.put_and_read(scope, render_service(subject))
        for other in TYPES:
            if subject.names.service(other) != subject.service_name:
                await self._objects.drop(scope, SERVICE, subject.names.service(other))
        return None

    async def _await_endpoint(self, scope: ClusterScope) -> Wait | None:
        subject, service = scope.subject, scope.service
        assert service is not None
        node = ""
        if subject.spec.service.type == "NodePort" and not subject.spec.external_address:
            node = await self._node_address(scope)
        found = endpoint_of(subject, service, node)
        if isinstance(found, Pending):
            self._say(scope, ConditionReport(status.EXPOSED, "False", found.reason, found.message))
            return Wait(found.reason, found.message, after=ADDRESS_SECONDS)
        self._say(
            scope, ConditionReport(status.EXPOSED, "True", "ClusterWithExternalAddress", f"The address is {found}")
        )
        scope.endpoint = found
        await self._publish(scope, found)
        return None

    async def _node_address(self, scope: ClusterScope) -> str:
        nodes = (await scope.required_host.client.list(NODE)).items
        found = endpoints.node_address(nodes)
        if found or nodes:
            return found
        # A plane without Nodes says on its Pods where their ports are reached; those of etcd are there first.
        for selector in (scope.subject.pod_selector, scope.subject.etcd_selector):
            for pod in (await scope.required_host.client.list(POD, selected(scope, selector))).items:
                if address := (pod.get("status") or {}).get("hostIP"):
                    return str(address)
        return ""

    async def _publish(self, scope: ClusterScope, endpoint: Endpoint) -> None:
        """Where others look for it: users in the spec, the control plane of a Cluster in an annotation."""
        meta, body = scope.object.metadata, dict[str, Any]()
        if meta.annotations.get(ENDPOINT_ANNOTATION) != str(endpoint):
            body["metadata"] = {"annotations": {ENDPOINT_ANNOTATION: str(endpoint)}}
        if not scope.subject.spec.external_address and scope.subject.spec.ingress is None:
            body["spec"] = {"externalAddress": endpoint.host}
        if body:
            body.setdefault("metadata", {})["uid"] = meta.uid
            written = await self.client.patch(Cluster, scope.key, MergePatch(body), self._write)
            scope.update_metadata(written)

    async def _hold_certificates(self, scope: ClusterScope) -> Wait | None:
        subject, now = scope.subject, self.clock.now()
        owner = owner_reference(scope.object, controller=True)
        running = scope.statefulset is not None
        try:
            scope.authorities = await self._certificates.hold_authorities(
                subject, owner, parent=controller_of(scope.object), running=running, now=now
            )
            scope.leaves = await self._certificates.hold_leaves(subject, scope.authorities, owner, now=now)
        except PkiError as error:
            self._say(scope, ConditionReport(status.CERTIFICATES, "False", "CertificatesUnusable", str(error)))
            return Wait("CertificatesUnusable", str(error), after=_RETRY_SECONDS, warning=True)
        if scope.required_host.remote:
            for purpose, pair in [*scope.authorities.items(), *scope.leaves.items()]:
                await self._objects.put(
                    scope, render_secret(subject, subject.certificate(purpose), pair, scope.required_host.owner)
                )
        self._say(scope, ConditionReport(status.CERTIFICATES, "True", status.CREATED))
        return None

    async def _hold_files(self, scope: ClusterScope) -> Wait | None:
        subject, endpoint = scope.subject, scope.endpoint
        addresses = (scope.service.get("spec") or {}).get("clusterIPs") or () if scope.service is not None else ()
        scope.config = render_config(subject, endpoint.host, addresses)
        objects = [
            render_config_map(subject, scope.config),
            render_entrypoint(subject),
            render_endpoint_manifest(subject, endpoint),
            render_telemetry(subject),
        ]
        if subject.spec.monitoring.enabled:
            objects.append(render_monitoring(subject))
        ingress = subject.spec.ingress
        if ingress is not None:
            objects.append(render_ingress_manifests(subject, ingress))
            authority = scope.authorities["ca"].certificate
            objects.append(render_ingress_certificates(subject, scope.leaves[PROXY], authority))
            if ingress.deploy is not False:
                objects.append(render_ingress(subject, ingress))
        for each in objects:
            await self._objects.put(scope, each)
        if not subject.spec.monitoring.enabled:
            await self._objects.drop(scope, CONFIG_MAP, subject.names.monitoring)
        if ingress is None or ingress.deploy is False:
            await self._objects.drop(scope, INGRESS, subject.names.ingress)
        return None

    async def _hold_storage(self, scope: ClusterScope) -> Wait | None:
        subject = scope.subject
        if subject.storage == "nats":
            return await self._hold_nats(scope)
        if subject.storage != "etcd":
            return None
        pods = Pods.of(scope.etcd)
        members = plan_members(subject.spec.replicas, None if scope.etcd is None else pods.desired, pods.ready)
        await self._objects.put(scope, render_etcd_service(subject))
        scope.etcd = await self._objects.put_and_read(scope, render_etcd(subject, members))
        if subject.spec.storage.etcd.defrag_job.enabled:
            await self._objects.put(scope, render_defrag(subject))
        else:
            await self._objects.drop(scope, CRON_JOB, subject.names.defrag)
        return None

    async def _await_etcd(self, scope: ClusterScope) -> Wait | None:
        if scope.subject.storage != "etcd" or scope.statefulset is not None or Pods.of(scope.etcd).ready:
            return None
        name = scope.subject.names.etcd
        text = f"waiting for the first member of StatefulSet {name} to become ready"
        if reason := await self._pod_trouble(scope, name, scope.etcd):
            text = f"{text}: {reason}"
        return Wait("WaitingForEtcd", text, after=_RETRY_SECONDS)

    async def _hold_nats(self, scope: ClusterScope) -> Wait | None:
        subject = scope.subject
        await self._objects.put(scope, render_nats_service(subject))
        if await self._objects.find(scope, SECRET, subject.names.nats_token) is None:
            await self._objects.put(scope, render_nats_token(subject, secrets.token_hex(32)))
        return None

    async def _hold_pods(self, scope: ClusterScope) -> Wait | None:
        digest = static_digest(scope.config)
        client = scope.leaves.get(ETCD_CLIENT)
        if client is not None:  # k0s has a copy, made when its Pod started
            digest = f"{digest}-{hashlib.sha256(client.certificate).hexdigest()[:8]}"
        scope.statefulset = await self._objects.put_and_read(scope, render_statefulset(scope.subject, digest))
        self._count(scope)
        return None

    async def _hold_kubeconfig(self, scope: ClusterScope) -> Wait | None:
        server = kubeconfig.server_url(scope.endpoint.host, scope.endpoint.port)
        secret = await kubeconfig.ensure(
            self.client,
            scope.key,
            server=server,
            ca=scope.authorities["ca"],
            owner=owner_reference(scope.object, controller=True),
            now=self.clock.now(),
            options=self._write,
            proxy=self._capi.proxy,
        )
        owner = owner_reference(scope.object, controller=True)
        if controller_of(secret) is not None and not is_ours(secret, owner):
            key = kubeconfig.secret_key(scope.key)
            raise NameTaken(f"Secret {key} is the kubeconfig of another cluster: give the Cluster another name")
        wanted = scope.subject.spec.kubeconfig_secret_metadata
        meta, extra = secret.metadata, dict[str, Any]()
        for field, values in (("labels", wanted.labels), ("annotations", wanted.annotations)):
            held = meta.get(field) or {}
            if missing := {name: value for name, value in values.items() if held.get(name) != value}:
                extra[field] = missing
        if extra:
            await self.client.patch(
                SECRET, kubeconfig.secret_key(scope.key), MergePatch({"metadata": extra}), self._write
            )
        self._say(scope, ConditionReport(status.KUBECONFIG, "True", status.CREATED))
        return None

    async def _await_pods(self, scope: ClusterScope) -> Wait | None:
        pods, replicas = Pods.of(scope.statefulset), scope.subject.spec.replicas
        if pods.ready:
            return None
        if not replicas:
            text = "spec.replicas is 0: the control plane is stopped"
            self._say(scope, ConditionReport(status.FUNCTIONAL, "False", "NoReadyReplicas", text))
            return Wait("NoReplicas", text)
        name = scope.subject.names.statefulset
        text = f"none of {replicas} replicas of StatefulSet {name} is ready"
        if reason := await self._pod_trouble(scope, name, scope.statefulset):
            text = f"{text}: {reason}"
        self._say(scope, ConditionReport(status.FUNCTIONAL, "False", "NoReadyReplicas", text))
        return Wait("NoReadyReplicas", text, after=_RETRY_SECONDS)

    async def _pod_trouble(self, scope: ClusterScope, name: str, owner: Unstructured | None) -> str:
        """What keeps the first Pod of a StatefulSet from running."""
        pod = await self._objects.find(scope, POD, f"{name}-0")
        began = parse_time(str(owner.metadata["creationTimestamp"])) if owner is not None else self.clock.now()
        return pod_trouble(f"{name}-0", pod, late=self.clock.now() - began > _LATE_SECONDS)

    async def _await_api(self, scope: ClusterScope) -> Wait | None:
        try:
            async with connected(self._capi, self.client, scope.key) as client:
                await client.get(NAMESPACE, SYSTEM)
                await self._hold_dynamic_config(scope, client)
        except (ApiError, ConfigError, TimeoutError) as error:
            text = f"the API server at {scope.endpoint} does not answer: {error}"
            self._say(scope, ConditionReport(status.FUNCTIONAL, "False", status.INTERNAL_ERROR, text))
            return Wait("APIServerNotReachable", text, after=PROBE_SECONDS)
        self._say(scope, ConditionReport(status.FUNCTIONAL, "True", "KubeSystemNamespaceFound"))
        return None

    async def _hold_dynamic_config(self, scope: ClusterScope, client: Any) -> None:
        """k0s follows its ClusterConfig inside the cluster, once it has created it."""
        key = Key("kube-system", "k0s")
        found = await find_object(client, CLUSTER_CONFIG, key)
        if found is None:
            return
        patch = follow(found.get("spec") or {}, dynamic_spec(scope.config))
        if patch is not None:
            await client.patch(CLUSTER_CONFIG, key, MergePatch({"spec": patch}), self._write)

    async def _await_rollout(self, scope: ClusterScope) -> Wait | None:
        """Available as soon as one Pod serves; but the loop ends only when all of them do."""
        pods, replicas = Pods.of(scope.statefulset), scope.subject.spec.replicas
        etcd = Pods.of(scope.etcd)
        growing = scope.etcd is not None and plan_members(replicas, etcd.desired, etcd.desired) != etcd.desired
        if growing or pods.ready < replicas or pods.updated < replicas:
            scope.unfinished = f"{pods.ready} of {replicas} replicas are ready"
        scope.timer = scope.timer or Wait("Probe", after=STABLE_SECONDS, quiet=True)
        return None
