"""The add-ons of a tenant cluster as ClusterAddons. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from homeport.machinery.address import AddressSet
from homeport.platforms.butler.addon.offer import ALIASES, Offer
from homeport.platforms.butler.normal.addons import AddonModel
from homeport.platforms.butler.tenant.blueprint import AddonRequest

Json = dict[str, Any]

_POOL = "default-pool"
_ADVERTISEMENT = "default"
_HOMEPORT: Mapping[str, Offer] = MappingProxyType({})  # every add-on is one that Homeport knows


def addon_requests(
    addons: Sequence[AddonModel], addresses: AddressSet, offers: Mapping[str, Offer] = _HOMEPORT
) -> tuple[AddonRequest, ...]:
    """`addresses`: of load balancers. Without any, MetalLB would have nothing to give out, and is left out.

    `offers`: by provider. One with a definition gets its values from there and from the TenantCluster alone.
    """
    return tuple(
        _request(each, addresses, offers.get(each.provider))
        for each in addons
        if each.provider != "metallb" or addresses
    )


def _request(addon: AddonModel, addresses: AddressSet, offer: Offer | None) -> AddonRequest:
    values = dict(addon.values)
    if offer is not None and offer.definition is not None:
        return AddonRequest(
            name=addon.role, addon=offer.name, version=addon.version, values=values, definition=offer.definition
        )
    return AddonRequest(
        name=addon.role,
        addon=ALIASES.get(addon.provider, addon.provider),
        version=addon.version,
        values=values,
        parameters=_parameters(addon.provider, addresses),
    )


def _parameters(addon: str, addresses: AddressSet) -> Json:
    if addon == "cilium":
        return {"kubeProxyReplacement": True}
    if addon == "metallb":
        ranges = [each.strip() for each in str(addresses).split(",")]
        return {"addresses": ranges, "pool": _POOL, "advertisement": _ADVERTISEMENT}
    if addon == "traefik" and not addresses:
        return {"serviceType": "NodePort"}  # without load balancers its Service would wait for an address for ever
    return {}
