"""Whether the machine of an etcd member that has no Machine object is really gone.

The member may be healthy, and only its objects lost: after a restore of an older backup, say. It is gone when it does
not answer, its Node does not exist and the infrastructure provider, asked again, has no machine of its name or
addresses. The question and the answer are annotations of the infrastructure cluster; a provider that does not answer
proves nothing.
"""

from __future__ import annotations

import uuid
from urllib.parse import urlsplit

from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Unstructured
from homeport.capi.capi import Capi
from homeport.capi.resolution import NotInstalled
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.controlplane.kubeadm.etcd.client import Member
from homeport.controlplane.kubeadm.observe.state import Observed
from homeport.controlplane.kubeadm.scope import ControlPlaneScope
from homeport.infra.orphan.record import REQUEST, Answer, Request
from homeport.runtime.controller import Controller

_REFRESH_SECONDS = 600


def known_as(member: Member) -> tuple[str, ...]:
    """Its name and the hosts of its addresses."""
    hosts = (urlsplit(each).hostname or "" for each in (*member.peer_urls, *member.client_urls))
    found = (member.name, *hosts)
    return tuple(dict.fromkeys(each for each in found if each and each not in ("127.0.0.1", "::1", "localhost")))


class Absence:
    def __init__(self, capi: Capi, controller: Controller, client: Client, write: Write) -> None:
        self._capi = capi
        self._controller = controller  # woken by the infrastructure cluster that it reads
        self._client = client
        self._write = write
        self._asker = uuid.uuid4().hex  # an answer to somebody who ran before us may be as old as a backup

    async def prove(self, scope: ControlPlaneScope, observed: Observed) -> frozenset[int]:
        """The members that are gone, by id. Asks where that is not known yet; the answer wakes the control plane."""
        strays = [each for each in observed.strays if each.name not in scope.seen.nodes and known_as(each)]
        infra = await self._infra_cluster(scope) if strays else None
        if infra is None:
            return frozenset()
        ids = "-".join(f"{each.id:x}" for each in strays)
        request = Request(
            id=f"etcd-{self._asker}-{ids}-{int(scope.now // _REFRESH_SECONDS)}",
            seek=tuple(sorted({text for each in strays for text in known_as(each)})),
        )
        annotations = infra.metadata.get("annotations") or {}
        answer = Answer.parse(annotations)
        if answer.request != request.id:
            if Request.parse(annotations).id != request.id:
                await self._ask(scope, infra, request)
            return frozenset()
        if answer.error:
            return frozenset()
        return frozenset(each.id for each in strays if not set(known_as(each)) & set(answer.present))

    async def _infra_cluster(self, scope: ControlPlaneScope) -> Unstructured | None:
        ref = scope.cluster.spec.infrastructure_ref
        if ref is None:
            return None
        try:
            return await self._capi.externals.get(
                ref,
                scope.cluster_key.namespace,
                watcher=self._controller,
                owner_kind=KubeadmControlPlane.__resource__,
                owner=scope.key,
            )
        except NotInstalled:
            return None

    async def _ask(self, scope: ControlPlaneScope, infra: Unstructured, request: Request) -> None:
        ref = scope.cluster.spec.infrastructure_ref
        assert ref is not None
        served = self._capi.externals.served(ref)
        body = {"metadata": {"annotations": {REQUEST: request.render()}, "uid": infra.uid}}
        key = Key(scope.cluster_key.namespace, infra.name)
        try:
            await self._client.patch(served.resource, key, MergePatch(body), self._write)
        except NotFound:
            return
