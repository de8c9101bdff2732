"""The Secrets of a control plane: authorities made once and never again, a kubeconfig that is renewed in time."""

from __future__ import annotations

from typing import Any

from homeport.api.bootstrap.v1beta2.kubeadm import ClusterConfiguration
from homeport.capi.capi import Capi
from homeport.capi.name import Condition, Reason
from homeport.capi.object.ownership import owner_reference
from homeport.capi.remote import kubeconfig, pki
from homeport.capi.remote.pki import EXTERNAL_ETCD, GENERATED, Certificates, PkiError
from homeport.client.protocol import Client, Key, Write
from homeport.controlplane.condition import DesiredCondition
from homeport.controlplane.kubeadm.desired import etcd_managed
from homeport.controlplane.kubeadm.scope import ControlPlaneScope
from homeport.controlplane.secret import MISSING_SECONDS, PlaneSecrets
from homeport.runtime.outcome import Wait

_CA_DAYS = 3650


class Secrets(PlaneSecrets):
    """What was read is kept until its Secret changes: the watch shows versions, not contents."""

    def __init__(self, capi: Capi, client: Client, write: Write) -> None:
        super().__init__(capi, client, write)
        self._certificates: dict[Key, tuple[tuple[str, ...], Certificates]] = {}
        self._kubeconfigs: dict[Key, tuple[str, str, float]] = {}  # version, server, when it is due

    def forget(self, cluster: Key) -> None:
        self._certificates.pop(cluster, None)
        self._kubeconfigs.pop(cluster, None)

    async def hold_certificates(self, scope: ControlPlaneScope) -> Wait | None:
        """Made while the cluster is not initialised; after that, what is lost can only be brought back by people."""
        try:
            scope.certificates = await self._read(scope)
        except PkiError as problem:
            self._say(scope, "False", Reason.NOT_AVAILABLE, str(problem))
            if scope.findings.initialized:
                return None  # the cluster runs: the rest is looked after, only nothing can join
            scope.findings.blocked = str(problem)
            return Wait("CertificatesUnusable", str(problem), after=MISSING_SECONDS)
        missing = self._missing(scope, self._purposes(scope))
        if missing:
            self._say(scope, "False", Reason.NOT_AVAILABLE, missing)
        else:
            self._say(scope, "True", Reason.AVAILABLE, "")
        return None

    def _say(self, scope: ControlPlaneScope, status: Any, reason: str, message: str) -> None:
        scope.findings.certificates = DesiredCondition(Condition.CERTIFICATES_AVAILABLE, status, reason, message)

    def _purposes(self, scope: ControlPlaneScope) -> tuple[pki.Purpose, ...]:
        return GENERATED if etcd_managed(scope.kcp) else EXTERNAL_ETCD

    async def _read(self, scope: ControlPlaneScope) -> Certificates:
        cluster = scope.cluster_key
        versions = self._versions(scope)
        known = self._certificates.get(cluster)
        if known is not None and versions is not None and known[0] == versions:
            return known[1]
        if scope.findings.initialized:
            found = await pki.lookup(self._client, cluster, self._purposes(scope), now=scope.now)
        else:
            configuration = scope.kcp.spec.kubeadm_config_spec.cluster_configuration
            found = await pki.ensure(
                self._client,
                cluster,
                owner=owner_reference(scope.kcp, controller=True),
                now=scope.now,
                options=self._write,
                algorithm=_algorithm(configuration),
                days=configuration.ca_certificate_validity_period_days or _CA_DAYS,
                external_etcd=not etcd_managed(scope.kcp),
            )
        if versions is not None:
            self._certificates[cluster] = (versions, found)
        return found

    def _versions(self, scope: ControlPlaneScope) -> tuple[str, ...] | None:
        """None: not all can be seen (yet), so nothing can be kept."""
        found = []
        for purpose in self._purposes(scope):
            name = pki.secret_name(scope.cluster.metadata.name, purpose)
            known = self._known.get(Key(scope.cluster.metadata.namespace, name))
            if known is None:
                return None
            found.append(known.metadata.resource_version)
        return tuple(found)

    async def hold_kubeconfig(self, scope: ControlPlaneScope) -> Wait | None:
        server = self._server(scope)
        if not server:
            return None
        seen = self._known.get(kubeconfig.secret_key(scope.cluster_key))
        known = self._kubeconfigs.get(scope.cluster_key)
        if seen is not None and known is not None:
            if known[:2] == (seen.metadata.resource_version, server) and scope.now < known[2]:
                return None
        secret = await self._ensure_kubeconfig(scope, server)
        try:
            due = kubeconfig.renew_at(kubeconfig.value(secret))
        except ValueError:
            due = None  # a user's own, in a form that only they understand
        self._kubeconfigs[scope.cluster_key] = (secret.resource_version, server, due or float("inf"))
        return None


def _algorithm(configuration: ClusterConfiguration) -> pki.Algorithm:
    found: Any = configuration.encryption_algorithm
    return found  # type: ignore[no-any-return]
