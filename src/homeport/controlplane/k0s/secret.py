"""The Secrets of a control plane: authorities made once and never again, a kubeconfig that is renewed in time."""

from __future__ import annotations

from homeport.api.meta import Unstructured
from homeport.capi.capi import Capi
from homeport.capi.object.ownership import owner_reference
from homeport.capi.remote import kubeconfig, pki
from homeport.capi.remote.pki import GENERATED, SECRET, PkiError
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.controlplane.k0s.scope import K0sPlaneScope
from homeport.controlplane.secret import MISSING_SECONDS, PlaneSecrets
from homeport.runtime.outcome import Wait

_LOOK_SECONDS = 600.0  # how long a kubeconfig that was good is not looked at again


class Secrets(PlaneSecrets):
    def __init__(self, capi: Capi, client: Client, write: Write) -> None:
        super().__init__(capi, client, write)
        self._looked: dict[Key, tuple[str, float]] = {}

    def forget(self, cluster: Key) -> None:
        self._looked.pop(cluster, None)

    async def hold_certificates(self, scope: K0sPlaneScope) -> Wait | None:
        """Made while the cluster is not initialized; after that, what is lost can only be brought back by people."""
        try:
            if scope.findings.initialized:
                scope.certificates = await pki.lookup(self._client, scope.cluster_key, GENERATED, now=scope.now)
            else:
                owner = owner_reference(scope.plane, controller=True)
                scope.certificates = await pki.ensure(
                    self._client, scope.cluster_key, owner=owner, now=scope.now, options=self._write
                )
        except PkiError as problem:
            scope.findings.certificates = str(problem)
            if scope.findings.initialized:
                return None  # the cluster runs: the rest is looked after, only nothing can join
            return Wait("CertificatesUnusable", str(problem), after=MISSING_SECONDS)
        scope.findings.certificates = self._missing(scope, GENERATED)
        return None

    async def hold_kubeconfig(self, scope: K0sPlaneScope) -> Wait | None:
        server = self._server(scope)
        if not server:
            return None
        looked = self._looked.get(scope.cluster_key)
        there = kubeconfig.secret_key(scope.cluster_key) in self._known
        if there and looked is not None and looked[0] == server and scope.now < looked[1]:
            return None
        secret = await self._ensure_kubeconfig(scope, server)
        await self._mark(scope, secret)
        self._looked[scope.cluster_key] = (server, scope.now + _LOOK_SECONDS)
        return None

    async def _mark(self, scope: K0sPlaneScope, secret: Unstructured) -> None:
        """Labels and annotations that the user wants on it."""
        wanted = scope.plane.spec.kubeconfig_secret_metadata
        patch = {}
        for name, values in (("labels", wanted.labels), ("annotations", wanted.annotations)):
            had = secret.metadata.get(name) or {}
            missing = {key: value for key, value in values.items() if had.get(key) != value}
            if missing:
                patch[name] = missing
        if patch:
            key = kubeconfig.secret_key(scope.cluster_key)
            await self._client.patch(SECRET, key, MergePatch({"metadata": patch}), self._write)
