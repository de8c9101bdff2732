"""Secrets of a management cluster: those of Talos, which are made once, and what is made from them."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource, Unstructured
from homeport.capi.remote import pki
from homeport.client.absence import find_object
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Client, Key, Write
from homeport.machinery.talos.bundle import BundleError, make_bundle, parse_bundle, render_bundle
from homeport.machinery.talos.client import render_talosconfig
from homeport.machinery.talos.config import ConfigError, MachineShape, render_config
from homeport.platforms.butler.bootstrap.name import (
    BUNDLE_KEY,
    TALOSCONFIG_KEY,
    USER_DATA_KEY,
    bundle_secret,
    talosconfig_secret,
    user_data_secret,
)
from homeport.platforms.butler.bootstrap.plan import MachinePlan, plan_cluster
from homeport.platforms.butler.bootstrap.render import render_secret
from homeport.platforms.butler.bootstrap.scope import BootstrapScope
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

SECRET = Resource("", "v1", "Secret", "secrets")


def machine_config(scope: BootstrapScope, plan: MachinePlan) -> str:
    """The same text each time. Raises ConfigError."""
    shape = plan_cluster(scope.model, scope.endpoint, scope.provider.support.interface)
    machine = MachineShape(plan.name, plan.size.labels)
    return render_config("controlplane" if plan.control_plane else "worker", shape, machine, scope.bundle)


class Secrets:
    def __init__(self, client: Client, write: Write, clock: Clock) -> None:
        self._client = client
        self._write = write
        self._clock = clock

    async def hold_bundle(self, scope: BootstrapScope) -> Wait | None:
        """A phase: the machines of a cluster understand each other by these secrets alone, so they are made once."""
        key = bundle_secret(scope.cluster_key)
        found = await self._find(key)
        if found is None and scope.children.machines:
            text = (
                f"Secret {key} with the secrets of Talos is gone, and machines exist that were made with them: restore "
                "it from a backup, or delete this ClusterBootstrap and create it again"
            )
            return Wait("TalosSecretsLost", text, warning=True)
        if found is None:
            made = await asyncio.to_thread(make_bundle, pki.moment(self._clock.now()))
            found = await self._create(key, scope.cluster, {BUNDLE_KEY: render_bundle(made)})
        try:
            scope.bundle = parse_bundle(base64.b64decode((found.get("data") or {}).get(BUNDLE_KEY) or ""))
        except BundleError as broken:
            return Wait("TalosSecretsInvalid", f"Secret {key}, key {BUNDLE_KEY}: {broken}", warning=True)
        return None

    async def hold_authority(self, scope: BootstrapScope) -> Wait | None:
        """A phase: from this Secret the kubeconfig of the Cluster is made, and renewed before it expires."""
        pair = pki.KeyPair(scope.bundle.kubernetes.certificate, scope.bundle.kubernetes.key)
        key = Key(scope.key.namespace, pki.secret_name(scope.model.name, "ca"))
        await self._create(key, scope.cluster, {"tls.crt": pair.certificate, "tls.key": pair.key})
        return None

    async def hold_config(self, scope: BootstrapScope, plan: MachinePlan) -> Wait | None:
        """The configuration that a machine boots with."""
        key = user_data_secret(scope.key.namespace, plan.name)
        try:
            text = machine_config(scope, plan)
        except ConfigError as broken:
            return Wait("InvalidConfiguration", f"spec.{broken}", warning=True)
        await self._create(key, scope.cluster, {USER_DATA_KEY: text})
        return None

    async def hold_talosconfig(self, scope: BootstrapScope, addresses: list[str]) -> None:
        key = talosconfig_secret(scope.cluster_key)
        if await self._find(key) is None:
            now = pki.moment(self._clock.now())
            text = render_talosconfig(scope.model.name, scope.bundle, addresses, addresses[:1], now)
            await self._create(key, scope.cluster, {TALOSCONFIG_KEY: text})

    async def _find(self, key: Key) -> Unstructured | None:
        return await find_object(self._client, SECRET, key)

    async def _create(self, key: Key, cluster: Cluster, data: Mapping[str, str | bytes]) -> Unstructured:
        """What exists counts."""
        try:
            return await self._client.create(render_secret(key, cluster, data), self._write, kind=SECRET)
        except AlreadyExists:
            return await self._client.get(SECRET, key)
