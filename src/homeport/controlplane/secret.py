"""The Secrets of a control plane: authorities made once and never again, a kubeconfig that is renewed in time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.api.meta import Unstructured
from homeport.capi.capi import Capi
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.capi.object.ownership import owner_reference
from homeport.capi.remote import kubeconfig, pki
from homeport.capi.remote.pki import SECRET
from homeport.client.protocol import Client, Query, Write
from homeport.controlplane.scope import PlaneScope
from homeport.runtime.informer import metadata_only

LABELLED = Query(labels=CLUSTER_NAME_LABEL)
MISSING_SECONDS = 30.0


class PlaneSecrets:
    def __init__(self, capi: Capi, client: Client, write: Write) -> None:
        self._client = client
        self._write = write
        self._proxy = capi.proxy
        self._known = capi.manager.informers.get(metadata_only(SECRET), LABELLED).cache

    def _missing(self, scope: PlaneScope[Any, Any], purposes: Iterable[pki.Purpose]) -> str:
        """Which are missing in a running cluster, and what to do; empty: none."""
        missing = [each for each in purposes if each not in scope.certificates]
        names = ", ".join(pki.secret_name(scope.cluster.metadata.name, each) for each in missing)
        if not missing:
            return ""
        return f"Secret {names} is missing and can't be created again for a running cluster: restore it from a backup"

    def _server(self, scope: PlaneScope[Any, Any]) -> str:
        """The URL to write into a kubeconfig; empty: none can be made, which is reported already."""
        authority = scope.certificates.get("ca")
        if authority is None or not authority.key:
            return ""
        endpoint = scope.cluster.spec.control_plane_endpoint
        return kubeconfig.server_url(endpoint.host, endpoint.port)

    async def _ensure_kubeconfig(self, scope: PlaneScope[Any, Any], server: str) -> Unstructured:
        return await kubeconfig.ensure(
            self._client,
            scope.cluster_key,
            server=server,
            ca=scope.certificates["ca"],
            owner=owner_reference(scope.object, controller=True),
            now=scope.now,
            options=self._write,
            proxy=self._proxy,
        )
