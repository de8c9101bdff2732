"""The infrastructure of a tenant cluster: its ProviderConfig, with what was found out about it, as a site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.butler.v1alpha1 import ProviderConfig
from homeport.api.butler.v1alpha1.part import ProviderRef
from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.platform import PlatformSupport
from homeport.client.protocol import Client
from homeport.infra.error import Misconfigured
from homeport.machinery import condition
from homeport.platforms.butler.normal.lookup import Found
from homeport.platforms.butler.normal.provider import ProviderModel
from homeport.platforms.butler.provider.site import NotSupported, SecretMissing, read_site
from homeport.platforms.butler.tenant import state
from homeport.platforms.butler.tenant.image import Image
from homeport.platforms.butler.tenant.state import Finding
from homeport.runtime.cache import key_of

DELETING = "ProviderDeleting"
_REASONS = ((NotSupported, "ProviderNotSupported"), (SecretMissing, "CredentialsNotFound"))


class ProviderFault(Exception):
    """There is no provider for the cluster. The text says why and what to do."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class Provider:
    config: ProviderConfig
    model: ProviderModel
    support: PlatformSupport
    site: Any

    @property
    def reference(self) -> ProviderRef:
        meta = self.config.metadata
        return ProviderRef(name=meta.name, namespace=meta.namespace)

    @property
    def images(self) -> list[Image]:
        return [Image(each.name, each.os, each.id) for each in self.config.status.images]

    @property
    def image(self) -> str:
        """That the ProviderConfig names, as the probe resolved it."""
        resolved = self.config.status.resolved
        found = next((each.id for each in resolved if "image" in each.field and each.id), "")
        known = next((each.name for each in self.images if found and each.id == found), "")
        return known or str(self.site.image)

    def id_of(self, image: str) -> str:
        """As machines name it."""
        return next((each.id for each in self.images if each.id and image in (each.id, each.name)), image)

    def mismatch(self, cluster: Cluster | None) -> str:
        """Why the cluster can't go on with this provider, which would replace all of its machines; '' if it can."""
        ref = cluster.spec.infrastructure_ref if cluster is not None else None
        if ref is None or not ref.kind or ref.kind == self.support.cluster_kind.kind:
            return ""
        return (
            f"ProviderConfig {key_of(self.config)} is of type {self.support.type}, and the cluster runs on a "
            f"{ref.kind}: machines do not move to another provider. Set the former type of the ProviderConfig again"
        )

    def finding(self) -> Finding:
        """What the probe of the ProviderConfig says. The cure is in its message."""
        found = condition.find(self.config.status.conditions, "Ready") or {}
        where = f"ProviderConfig {key_of(self.config)}"
        if self.config.metadata.deletion_timestamp:  # its own message names clusters of others
            return Finding(state.PROVIDER, DELETING, f"{where} is being deleted: new clusters need another one")
        if found.get("status") == "True":
            return Finding(state.PROVIDER)
        if not found:
            return Finding(state.PROVIDER, "ProviderNotProbed", f"{where} is being probed", fatal=False)
        return Finding(state.PROVIDER, str(found.get("reason")), f"{where}: {found.get('message')}")


class Providers:
    """Reads the ProviderConfig of a cluster with its credentials."""

    def __init__(self, client: Client, supports: Mapping[str, PlatformSupport]) -> None:
        self._client = client
        self._supports = supports

    async def read(self, found: Found, overrides: Mapping[str, Mapping[str, Any]]) -> Provider:
        """`overrides`: fields by type of provider that replace those of the ProviderConfig. Raises ProviderFault."""
        if found.config is None:
            raise ProviderFault("ProviderNotFound", found.message)
        where, spec = f"ProviderConfig {key_of(found.config)}", found.config.spec
        override = overrides.get(spec.provider or spec.type) or {}
        try:
            read = await read_site(self._client, self._supports, found.config, override)
        except Misconfigured as error:
            reason = next((text for kind, text in _REASONS if isinstance(error, kind)), "InvalidConfiguration")
            raise ProviderFault(reason, f"{where}: {error}") from None
        return Provider(found.config, read.model, read.support, read.site)
