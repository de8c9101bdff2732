"""Finds the credentials that a user names: of a ProviderConfig, a Cluster, a Credential, or a plain Secret.

For discovery, and for imports.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.butler.v1alpha1 import ProviderConfig
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.k0rdent.v1beta1 import Credential
from homeport.api.meta import Resource, Unstructured, wire
from homeport.app.platform import chosen
from homeport.capi.platform import PlatformSupport, Source
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key
from homeport.infra.preflight.near import near_objects
from homeport.platforms.butler.name import SYSTEM_NAMESPACE
from homeport.platforms.butler.provider.site import read_site
from homeport.platforms.k0rdent.management.credential import identity_error, identity_key

SECRET = Resource("", "v1", "Secret", "secrets")


class NoSource(Exception):
    """Nothing leads to a hypervisor; says what to name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the user named; all '' means: the only ProviderConfig that there is."""

    provider_config: str = ""  # NAME or NAMESPACE/NAME
    cluster: str = ""
    credential: str = ""
    secret: str = ""
    provider: str = ""  # nutanix or harvester, with a Credential or Secret
    address: str = ""  # of Prism Central, with a Credential or Secret


@dataclass(frozen=True, slots=True)
class Located:
    support: PlatformSupport
    source: Source
    origin: str  # for people: `ProviderConfig butler-system/site`


def supports() -> dict[str, PlatformSupport]:
    return {each.platform.type: each.platform for each in chosen().components if each.platform is not None}


async def locate(client: Client, namespace: str, wanted: Wanted) -> Located:
    """Raises NoSource, and ProviderError for credentials that can't be read."""
    if wanted.cluster:
        return await _of_cluster(client, _key(wanted.cluster, namespace))
    if wanted.credential:
        return await _of_secret(client, await secret_of(client, _key(wanted.credential, namespace)), wanted)
    if wanted.secret:
        return await _of_secret(client, _key(wanted.secret, namespace), wanted)
    return await _of_config(client, wanted.provider_config, namespace)


async def find_config(client: Client, name: str, namespace: str) -> ProviderConfig:
    """The ProviderConfig of this NAME or NAMESPACE/NAME; '': the only one. Raises NoSource."""
    found = list((await client.list(ProviderConfig)).items)
    names = sorted(f"{each.metadata.namespace}/{each.metadata.name}" for each in found)
    if name:
        keys = {f"{namespace}/{name}", f"{SYSTEM_NAMESPACE}/{name}", name}
        found = [each for each in found if f"{each.metadata.namespace}/{each.metadata.name}" in keys]
        if not found:
            there = f": there are {', '.join(names)}" if names else ""
            raise NoSource(f"no ProviderConfig {name!r} in namespaces {namespace} and {SYSTEM_NAMESPACE}{there}")
    if len(found) != 1:
        several = f"there are several ProviderConfigs ({', '.join(names)})" if found else "there is no ProviderConfig"
        raise NoSource(f"{several}: use --provider-config, --cluster, --credential or --secret")
    return found[0]


async def _of_config(client: Client, name: str, namespace: str) -> Located:
    config = await find_config(client, name, namespace)
    read = await read_site(client, supports(), config)
    at = f"{config.metadata.namespace}/{config.metadata.name}"
    return Located(read.support, Source(site=read.site), f"ProviderConfig {at}")


async def _of_cluster(client: Client, key: Key) -> Located:
    """With the credentials of its infrastructure object."""
    try:
        cluster = await client.get(Cluster, key)
    except NotFound:
        raise NoSource(f"Cluster {key} does not exist") from None
    ref = cluster.spec.infrastructure_ref
    support = next((each for each in supports().values() if ref and each.cluster_kind.kind == ref.kind), None)
    if ref is None or support is None:
        kind = ref.kind if ref is not None else "nothing"
        raise NoSource(f"Cluster {key}: infrastructureRef names {kind}, which has no discovery")
    infra = await client.get(support.cluster_kind, Key(key.namespace, ref.name))
    return Located(support, Source(infra=wire(infra)), f"{ref.kind} {key.namespace}/{ref.name}")


async def secret_of(client: Client, key: Key) -> Key:
    """The Secret that a Credential names. Raises NoSource."""
    try:
        found = await client.get(Credential, key)
    except NotFound:
        raise NoSource(f"Credential {key} does not exist") from None
    if wrong := identity_error(found):
        raise NoSource(f"Credential {key}: {wrong}")
    if found.spec.identity_ref.kind != "Secret":
        raise NoSource(f"Credential {key}: spec.identityRef does not name a Secret")
    return identity_key(found)


async def read_secret(client: Client, key: Key) -> Unstructured:
    """Raises NoSource."""
    try:
        return await client.get(SECRET, key)
    except NotFound:
        raise NoSource(f"Secret {key} does not exist{await near_objects(client, SECRET, key)}") from None


async def _of_secret(client: Client, key: Key, wanted: Wanted) -> Located:
    found = await read_secret(client, key)
    data = {name: base64.b64decode(value).decode("utf-8", "replace") for name, value in _data(found).items()}
    known = supports()
    provider = wanted.provider or next((each.type for each in known.values() if each.secret_key in data), "nutanix")
    if provider not in known:
        raise NoSource(f"--provider {provider}: expected one of {', '.join(sorted(known))}")
    if provider == "nutanix" and not wanted.address:
        raise NoSource(f"Secret {key} has credentials for Prism Central: give its address with --address")
    address, _, port = wanted.address.partition(":")
    settings = {"address": address, "port": port, "origin": f"Secret {key}"}
    settings = {name: value for name, value in settings.items() if value}
    return Located(known[provider], Source(settings=settings, secret=data), f"Secret {key}")


def _data(secret: Mapping[str, Any]) -> Mapping[str, str]:
    return secret.get("data") or {}


def _key(text: str, namespace: str) -> Key:
    space, _, name = text.rpartition("/")
    return Key(space or namespace, name)
