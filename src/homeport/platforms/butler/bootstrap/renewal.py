"""Renews the talosconfig of management clusters before its certificate expires.

It follows the Cluster rather than the ClusterBootstrap: after a pivot the Cluster and its Secrets are in another plane,
and the ClusterBootstrap is not.
"""

from __future__ import annotations

import asyncio
import base64

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Unstructured
from homeport.capi.object.paused import has_annotation
from homeport.capi.remote import pki
from homeport.client.absence import find_object
from homeport.client.protocol import Key, MergePatch, Write
from homeport.machinery.talos.bundle import BundleError, parse_bundle
from homeport.machinery.talos.client import TalosconfigError, remaining, renew_talosconfig
from homeport.platforms.butler.bootstrap.name import (
    BOOTSTRAP_LABEL,
    BUNDLE_KEY,
    TALOSCONFIG_KEY,
    bundle_secret,
    talosconfig_secret,
)
from homeport.platforms.butler.name import FIELD_MANAGER
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait

_LOOK_SECONDS = 6 * 3600.0
_RENEW_BELOW = 0.5  # of its time, as kubeconfigs


class TalosconfigReconciler:
    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        self._clock = manager.clock
        self._recorder = manager.recorder
        self._clusters = manager.informers.get(Cluster).cache
        self._write = Write(field_manager=FIELD_MANAGER)

    async def reconcile(self, key: Key) -> Wait | None:
        cluster = self._clusters.get(key)
        if cluster is None or not is_bootstrapped(cluster) or cluster.metadata.deletion_timestamp:
            return None
        if not (cluster.spec.paused or has_annotation(cluster)):  # it may be on its way to another plane
            await self._renew(cluster, key)
        return Wait("RenewTalosconfig", after=_LOOK_SECONDS, quiet=True)

    async def _renew(self, cluster: Cluster, key: Key) -> None:
        where = talosconfig_secret(key)
        secret = await self._find(where)
        if secret is None or not _belongs(secret, cluster):
            return  # it is made with the cluster; one that somebody put there is theirs
        now = self._clock.now()
        try:
            content = pki.secret_data(secret, TALOSCONFIG_KEY)
            if _RENEW_BELOW <= remaining(content, now) <= 1:
                return
            text = await asyncio.to_thread(
                renew_talosconfig, content, parse_bundle(await self._bundle(key)), pki.moment(now)
            )
        except (TalosconfigError, BundleError, pki.PkiError) as broken:
            self._recorder.record(cluster, "TalosconfigNotRenewed", f"Secret {where}: {broken}", warning=True)
            return
        encoded = base64.b64encode(text.encode()).decode()
        patch = {"metadata": {"resourceVersion": secret.resource_version}, "data": {TALOSCONFIG_KEY: encoded}}
        await self._client.patch(pki.SECRET, where, MergePatch(patch), self._write)
        self._recorder.record(cluster, "TalosconfigRenewed", f"Secret {where} has a new client certificate")

    async def _bundle(self, key: Key) -> bytes:
        where = bundle_secret(key)
        found = await self._find(where)
        if found is None:
            raise BundleError(f"not renewed, because Secret {where} with the secrets of Talos is gone: restore it")
        return pki.secret_data(found, BUNDLE_KEY)

    async def _find(self, key: Key) -> Unstructured | None:
        return await find_object(self._client, pki.SECRET, key)


def is_bootstrapped(cluster: Cluster) -> bool:
    return BOOTSTRAP_LABEL in cluster.metadata.labels


def _belongs(secret: Unstructured, cluster: Cluster) -> bool:
    owners = secret.metadata.get("ownerReferences") or ()
    return any(each.get("uid") == cluster.metadata.uid for each in owners)


def install_renewal(manager: Manager) -> None:
    reconciler = TalosconfigReconciler(manager)
    controller = Controller(
        "butler-talosconfig",
        Cluster,
        reconciler,
        workers=1,
        clock=manager.clock,
        predicate=lambda old, new: new is not None and is_bootstrapped(new),
    )
    manager.add(controller)
