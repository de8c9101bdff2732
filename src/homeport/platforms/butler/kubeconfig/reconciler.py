"""Answers requests for kubeconfigs: approves and signs those of members, and denies the others with a reason."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from homeport.api.butler.v1alpha1 import TenantCluster, User
from homeport.api.certificates.v1 import CertificateSigningRequest
from homeport.capi.component import Setup
from homeport.capi.remote import kubeconfig, pki
from homeport.client.absence import find_object
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.platforms.butler.kubeconfig.issue import RefusedRequest, check_request, sign, tenant_of
from homeport.platforms.butler.kubeconfig.request import CLUSTER_ANNOTATION, render_cluster
from homeport.platforms.butler.name import ENVIRONMENT_LABEL, FIELD_MANAGER
from homeport.platforms.butler.normal.team import Member, normal_team
from homeport.platforms.butler.team.member import resolve, role_of
from homeport.platforms.butler.team.tenancy import find_team
from homeport.platforms.butler.team.world import WorldView
from homeport.runtime.clock import parse_time, rfc3339
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope
from homeport.runtime.skeleton import ObjectReconciler

Request = Scope[CertificateSigningRequest]
KEPT_SECONDS = 3600.0  # answered requests are deleted after this time
_RETRY_SECONDS = 10.0


class KubeconfigReconciler(ObjectReconciler[CertificateSigningRequest, Request]):
    controller_name = "butler-kubeconfig"
    kind = CertificateSigningRequest
    field_manager = FIELD_MANAGER
    condition = ""
    workers = 2

    def __init__(self, manager: Manager) -> None:
        super().__init__(manager)
        self._world = WorldView(manager)
        self._tenants = manager.informers.get(TenantCluster).cache
        self._users = manager.informers.get(User).cache

    def load(self, obj: CertificateSigningRequest) -> Request | None:
        return None if tenant_of(obj.spec.signer_name) is None else Scope(obj)

    def phases(self, scope: Request) -> Sequence[Phase[Request]]:
        return [self._sweep] if is_answered(scope.object) else [self._answer]

    async def _answer(self, scope: Request) -> Wait | None:
        try:
            tenant, groups = self._grant(scope.object)
            csr = check_request(scope.object.spec)
        except RefusedRequest as error:
            await self._decide(scope, "Denied", "AccessDenied", str(error))
            return None
        cluster = Key(tenant.status.tenant_namespace, tenant.metadata.name)
        found = await pki.lookup(self.client, cluster, ("ca",), now=self.clock.now())
        if "ca" not in found or not found["ca"].key:
            return Wait("WaitingForCluster", f"cluster {cluster} has no CA yet", after=_RETRY_SECONDS)
        where = await self._cluster(cluster)
        if not where:
            return Wait("WaitingForCluster", f"cluster {cluster} has no kubeconfig yet", after=_RETRY_SECONDS)
        text, end = sign(csr, scope.object.spec, groups, found["ca"].issuer(), self.clock.now())
        user = scope.object.spec.username
        await self._decide(scope, "Approved", "MemberOfTeam", f"{user} is a member of the team of the cluster")
        await self._patch(scope, {"metadata": {"annotations": {CLUSTER_ANNOTATION: where}}})
        await self._patch(scope, {"status": {"certificate": base64.b64encode(text).decode()}}, "status")
        said = f"kubeconfig for {user}, valid until {end:%Y-%m-%dT%H:%M:%SZ}"
        self.recorder.record(tenant, "KubeconfigIssued", said)
        return None

    def _grant(self, request: CertificateSigningRequest) -> tuple[TenantCluster, list[str]]:
        """The cluster, and the groups of the requester that the team names. Raises RefusedRequest."""
        key = tenant_of(request.spec.signer_name)
        tenant = self._tenants.get(key) if key is not None else None
        # Whether the cluster exists is not told to those who have nothing to do with it.
        members = self._members(tenant) if tenant is not None else []
        spec = request.spec
        environment = tenant.metadata.labels.get(ENVIRONMENT_LABEL, "") if tenant is not None else ""
        if tenant is None or not role_of(members, spec.username, spec.groups, environment):
            raise RefusedRequest(
                f'"{spec.username}" is not a member of the team of TenantCluster {key}: an admin of the platform adds '
                "members to spec.access of the Team"
            )
        if not tenant.status.tenant_namespace:
            raise RefusedRequest(f"TenantCluster {key} has no control plane yet: ask again when it is Ready")
        named = {each.name for each in members if each.kind == "Group" and each.environment in ("", environment)}
        return tenant, sorted(named & set(spec.groups))

    def _members(self, tenant: TenantCluster) -> list[Member]:
        world = self._world.look()
        team, _ = find_team(tenant, world.settings.mode, world.teams)
        model = normal_team(team).model if team is not None else None
        return resolve(model.members, self._users.list()) if model is not None else []

    async def _cluster(self, cluster: Key) -> str:
        """The part of the cluster's kubeconfig that is no secret."""
        secret = await find_object(self.client, pki.SECRET, kubeconfig.secret_key(cluster))
        if secret is None:
            return ""
        return render_cluster(kubeconfig.parse(kubeconfig.value(secret)))

    async def _decide(self, scope: Request, kind: str, reason: str, message: str) -> None:
        now = rfc3339(self.clock.now())
        condition = {
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        }
        if not any(each.get("type") == kind for each in scope.object.status.conditions):
            conditions = [*scope.object.status.conditions, condition]
            await self._patch(scope, {"status": {"conditions": conditions}}, "approval")

    async def _patch(self, scope: Request, body: dict[str, Any], subresource: str = "") -> None:
        patch = MergePatch(body)
        await self.client.patch(self.kind.__resource__, scope.key, patch, self._write, subresource=subresource)

    async def _sweep(self, scope: Request) -> Wait | None:
        left = parse_time(scope.object.metadata.creation_timestamp or "") + KEPT_SECONDS - self.clock.now()
        if left > 0:
            return Wait("Answered", "the request is answered", after=left + 1, quiet=True)
        try:
            await self.client.delete(self.kind, scope.key, uid=scope.object.metadata.uid)
        except NotFound:
            return None
        return None


def is_answered(request: CertificateSigningRequest) -> bool:
    verdicts = {each.get("type") for each in request.status.conditions}
    return bool(request.status.certificate or verdicts & {"Denied", "Failed"})


def install(setup: Setup) -> None:
    setup.manager.add(KubeconfigReconciler(setup.manager).controller)
