"""The cluster in which the Pods of a control plane run: this one, or another one by its kubeconfig."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.k0smotron.part import KubeconfigRef
from homeport.api.k0smotron.v1beta2 import Cluster
from homeport.api.meta import Resource
from homeport.capi.capi import Capi
from homeport.capi.object.ownership import owner_reference
from homeport.capi.remote.pki import SECRET
from homeport.client.absence import find_object
from homeport.client.config import ConfigError
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Client, Key, Write
from homeport.hosted.k0smotron.grant import is_granted, refusal
from homeport.hosted.k0smotron.name import Names, base_labels
from homeport.runtime.outcome import Wait

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
_RETRY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Host:
    client: Client
    owner: Mapping[str, Any]  # what all objects of the control plane belong to there
    remote: bool = False


class Hosts:
    """One connection for each kubeconfig in use."""

    def __init__(self, capi: Capi, client: Client, write: Write) -> None:
        self._capi = capi
        self._client = client
        self._write = write
        self._clients: dict[tuple[Key, str], tuple[bytes, Client]] = {}

    async def find(self, cluster: Cluster, *, create: bool) -> Host | Wait | None:
        """None: nothing of the control plane is there. `create`: what owns its objects is made if it is missing."""
        ref = _reference(cluster)
        if ref is None:
            return Host(self._client, owner_reference(cluster, controller=True))
        client = await self._connected(ref, cluster.metadata.namespace)
        if isinstance(client, Wait):
            return client
        names, namespace = Names(cluster.metadata.name), cluster.metadata.namespace
        key = Key(namespace, names.root_owner)
        if create:
            with contextlib.suppress(AlreadyExists):
                await client.create({"metadata": {"name": namespace}}, self._write, kind=NAMESPACE)
            metadata = {"name": key.name, "namespace": namespace, "labels": base_labels(cluster.metadata.name)}
            with contextlib.suppress(AlreadyExists):
                await client.create({"metadata": metadata}, self._write, kind=CONFIG_MAP)
        root = await find_object(client, CONFIG_MAP, key)
        if root is None:
            return None
        return Host(client, owner_reference(root, controller=True, kind=CONFIG_MAP), remote=True)

    async def _connected(self, ref: KubeconfigRef, namespace: str) -> Client | Wait:
        key = Key(ref.namespace or namespace, ref.name)
        secret = await find_object(self._client, SECRET, key)
        # Whether a Secret of another namespace exists is nobody's business either.
        held = {} if secret is None else secret.metadata.get("annotations") or {}
        if not is_granted(key.namespace, held, namespace):
            text = refusal(f"Secret {key} of spec.remoteHostCluster.kubeconfigRef", namespace)
            return Wait("NamespaceNotAllowed", text, after=_RETRY_SECONDS, warning=True)
        if secret is None:
            text = (
                f"Secret {key} of spec.remoteHostCluster.kubeconfigRef does not exist: create it with the kubeconfig "
                "of the cluster in which the Pods run"
            )
            return Wait("WaitingForHostCluster", text, after=_RETRY_SECONDS)
        try:
            content = base64.b64decode((secret.get("data") or {}).get(ref.key) or "", validate=True)
        except binascii.Error:
            content = b""
        digest = hashlib.sha256(content).digest()
        known = self._clients.get((key, ref.key))
        if known is not None and known[0] == digest:
            return known[1]
        try:
            if not content:
                raise ConfigError(f"data[{ref.key}] is missing: it must contain the kubeconfig")
            made = self._capi.connect(content, self._capi.proxy)
        except ConfigError as error:
            return Wait("HostClusterUnusable", f"Secret {key}: {error}", after=_RETRY_SECONDS)
        self._clients[key, ref.key] = (digest, made)
        if known is not None:
            await known[1].close()
        return made

    async def hold(self) -> None:
        """Runs as long as the connections are needed, and closes them then."""
        try:
            await asyncio.Event().wait()
        finally:
            await self.close()

    async def close(self) -> None:
        for _, client in self._clients.values():
            await client.close()
        self._clients.clear()


def _reference(cluster: Cluster) -> KubeconfigRef | None:
    host = cluster.spec.remote_host_cluster
    return None if host is None else host.kubeconfig_ref
