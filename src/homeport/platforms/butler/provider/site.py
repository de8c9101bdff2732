"""From a ProviderConfig and its Secret to a site: where its machines go, and with which credentials."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.butler.v1alpha1 import ProviderConfig
from homeport.api.meta import Resource, Unstructured
from homeport.capi.platform import Origin, PlatformSupport
from homeport.client.absence import find_object
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key
from homeport.infra.error import Misconfigured
from homeport.platforms.butler.name import TEAM_LABEL
from homeport.platforms.butler.normal.provider import ProviderModel, SecretAt, normal_provider_config

SECRET = Resource("", "v1", "Secret", "secrets")
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


class NotSupported(Misconfigured):
    """The type of a provider that this plane does not have."""


class SecretMissing(Misconfigured):
    """The Secret of a ProviderConfig does not exist."""


@dataclass(frozen=True, slots=True)
class SiteOf:
    """A ProviderConfig that was read. `site` is an object of its provider."""

    model: ProviderModel
    support: PlatformSupport
    site: Any
    secret_version: str  # changes with the Secret


async def read_site(
    client: Client,
    supports: Mapping[str, PlatformSupport],
    config: ProviderConfig,
    override: Mapping[str, Any] | None = None,
) -> SiteOf:
    """`override`: fields of the provider's part that replace those of the ProviderConfig. Raises Misconfigured."""
    model, support = read_model(config, supports)
    await _check_owner(client, config, model)
    found = await _secret(client, model.credentials, model.type) if model.credentials is not None else Unstructured()
    named = f"Secret {found.namespace}/{found.name}" if found else "no Secret"
    part = f"spec.{model.type}"
    origin = Origin(part, named, f"{part}.prismCentral.insecure")
    data = _data(found, model.credentials, support, named)
    site = support.site(merged(model.part, override or {}), data, origin)
    return SiteOf(model, support, site, found.resource_version)


async def _check_owner(client: Client, config: ProviderConfig, model: ProviderModel) -> None:
    """A team that could name Secrets of others would send their credentials to an address of its own choice."""
    namespace, at = config.metadata.namespace, model.credentials
    if at is None or at.namespace == namespace:
        return
    found = await find_object(client, NAMESPACE, Key("", namespace))
    if found is None:
        return
    if team := (found.metadata.get("labels") or {}).get(TEAM_LABEL):
        raise Misconfigured(foreign_credentials(model.type, at, namespace, team))


def foreign_credentials(type_: str, at: SecretAt, namespace: str, team: str) -> str:
    return (
        f"spec.{type_}.credentialsRef.namespace: {at.namespace} is not the namespace of team {team}: a ProviderConfig "
        f"of a team uses Secrets of namespace {namespace} alone"
    )


def read_model(
    config: ProviderConfig, supports: Mapping[str, PlatformSupport]
) -> tuple[ProviderModel, PlatformSupport]:
    """Raises Misconfigured that names the fields, and NotSupported."""
    normal = normal_provider_config(config)
    if normal.model is None:
        raise Misconfigured(normal.text)
    support = supports.get(normal.model.type)
    if support is None:
        known = ", ".join(sorted(supports)) or "none"
        field = "spec.type" if config.spec.type else "spec.provider"
        raise NotSupported(
            f"{field}: provider {normal.model.type} is not supported yet; the supported providers are: {known}"
        )
    faults = "; ".join(
        f"spec.{support.type}.{each.field}: {each.message}" for each in support.faults(normal.model.part)
    )
    if faults:
        raise Misconfigured(faults)
    return normal.model, support


def merged(part: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """A field that is overridden is left out in all of its spellings: cluster and clusterUUID, for example."""
    stems = {_stem(name) for name, value in override.items() if value}
    kept = {name: value for name, value in part.items() if _stem(name) not in stems}
    return {**kept, **{name: value for name, value in override.items() if value}}


def _stem(name: str) -> str:
    return name.removesuffix("UUID").removesuffix("Name")


async def _secret(client: Client, at: SecretAt, type_: str) -> Unstructured:
    try:
        found: Unstructured = await client.get(SECRET, Key(at.namespace, at.name))
    except NotFound:
        raise SecretMissing(
            f"spec.{type_}.credentialsRef: Secret {at.namespace}/{at.name} does not exist: create it; the provider is "
            "probed again automatically"
        ) from None
    return found


def _data(secret: Unstructured, at: SecretAt | None, support: PlatformSupport, named: str) -> dict[str, str]:
    """Decoded. The key that the reference names stands for the one that the provider reads by default."""
    data = {
        name: base64.b64decode(value).decode("utf-8", errors="replace")
        for name, value in (secret.get("data") or {}).items()
    }
    if at is None or not at.key or not support.secret_key:
        return data
    if at.key not in data:
        there = ", ".join(sorted(data)) or "none"
        raise Misconfigured(f"{named} has no key {at.key} (its keys: {there}): correct credentialsRef.key")
    return {**data, support.secret_key: data[at.key]}
