"""Deletion of a k0smotron Cluster: tokens, the Pods of the control plane, those of its storage, then the rest."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

from homeport.api.k0smotron.v1beta2 import JoinTokenRequest
from homeport.client.absence import drop_object
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key
from homeport.hosted.k0smotron import status
from homeport.hosted.k0smotron.host import CONFIG_MAP, Hosts
from homeport.hosted.k0smotron.name import CLUSTER_NAMESPACE_ANNOTATION
from homeport.hosted.k0smotron.object import HostObjects, selected
from homeport.hosted.k0smotron.pod.subject import Subject
from homeport.hosted.k0smotron.scope import ClusterScope
from homeport.hosted.k0smotron.status import ConditionReport
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase
from homeport.runtime.workload.kind import CLAIM, POD, STATEFUL_SET

REMOTE_SECONDS = 10.0  # Pods in another cluster are not watched


class Deletion:
    def __init__(
        self,
        client: Client,
        hosts: Hosts,
        objects: HostObjects,
        report: Callable[[ClusterScope, ConditionReport], None],
    ) -> None:
        self._client = client
        self._hosts = hosts
        self._objects = objects
        self._report = report

    @property
    def phases(self) -> list[Phase[ClusterScope]]:
        return [
            self._report_deletion,
            self._release_tokens,
            self._release_pods,
            self._release_claims,
            self._release_rest,
        ]

    async def _report_deletion(self, scope: ClusterScope) -> Wait | None:
        self._report(scope, ConditionReport(status.DELETING, "True", "Deleting"))
        host = await self._hosts.find(scope.object, create=False)
        if isinstance(host, Wait):
            if status.was_observed(scope.object):
                return host
            host = None  # it never got so far that anything could be there
        scope.host = host
        scope.subject = Subject.of(scope.object, {} if host is None else host.owner)
        return None

    async def _tokens(self, scope: ClusterScope) -> AsyncIterator[JoinTokenRequest]:
        for each in (await self._client.list(JoinTokenRequest)).items:
            namespace = each.metadata.annotations.get(CLUSTER_NAMESPACE_ANNOTATION) or each.metadata.namespace
            if Key(namespace, each.spec.cluster_name) == scope.key:
                yield each

    async def _release_tokens(self, scope: ClusterScope) -> Wait | None:
        """They are tokens of a cluster that will no longer exist; their Secrets go with them."""
        async for each in self._tokens(scope):
            if not each.metadata.deletion_timestamp:
                with contextlib.suppress(NotFound):
                    key = Key(each.metadata.namespace, each.metadata.name)
                    await self._client.delete(JoinTokenRequest, key, uid=each.metadata.uid)
        return None

    async def _release_pods(self, scope: ClusterScope) -> Wait | None:
        """The control plane before its storage, so that nothing is half written."""
        if scope.host is None:
            return None
        for name in (scope.subject.names.statefulset, scope.subject.names.etcd):
            await self._objects.drop(scope, STATEFUL_SET, name)
            selector = (
                scope.subject.pod_selector if name == scope.subject.names.statefulset else scope.subject.etcd_selector
            )
            query = selected(scope, selector)
            pods = (await scope.host.client.list(POD, query)).items
            if pods:
                text = f"waiting for Pods of StatefulSet {name} to stop: {', '.join(pod.name for pod in pods)}"
                return Wait("DeletingPods", text, after=REMOTE_SECONDS)
        return None

    async def _release_claims(self, scope: ClusterScope) -> Wait | None:
        """Volumes hold the cluster's data: they go only if the user said so."""
        spec = scope.subject.spec
        if scope.host is None:
            return None
        doomed = []
        if spec.persistence.auto_delete_pvcs:
            doomed.append(scope.subject.pod_selector)
        if spec.storage.etcd.auto_delete_pvcs:
            doomed.append(scope.subject.etcd_selector)
        for selector in doomed:
            query = selected(scope, selector)
            for claim in (await scope.host.client.list(CLAIM, query)).items:
                await drop_object(scope.host.client, CLAIM, Key(claim.namespace, claim.name), uid=claim.uid)
        return None

    async def _release_rest(self, scope: ClusterScope) -> Wait | None:
        """Here the garbage collector follows the owner references; elsewhere it follows the root owner."""
        if scope.host is not None and scope.host.remote:
            with contextlib.suppress(NotFound):
                key = Key(scope.key.namespace, scope.subject.names.root_owner)
                await scope.host.client.delete(CONFIG_MAP, key, propagation="Background")
        self._report(scope, ConditionReport(status.DELETING, "True", "Completed"))
        return None
