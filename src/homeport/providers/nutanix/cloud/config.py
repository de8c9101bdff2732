"""nutanix_config.json: the configuration of the cloud controller manager, in the vendor's own format.

`addressPools` (name > ranges, for Services of type LoadBalancer) is ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from homeport.api.nutanix.v1beta1 import CredentialRef, PrismCentral, TrustBundle
from homeport.infra.document import flag_at, list_at, object_at, parse_document
from homeport.infra.error import Misconfigured
from homeport.machinery.address import Address, parse_span
from homeport.providers.nutanix.client import Credentials
from homeport.providers.nutanix.credential import DEFAULT_PORT, Target

FILE = "nutanix_config.json"


@dataclass(frozen=True, slots=True)
class CloudConfig:
    central: PrismCentral
    namespace: str
    region_category: str = ""  # '' with zone_category: topology is Prism Central and Prism Element
    zone_category: str = ""
    custom_labels: bool = False
    ignored: tuple[tuple[Address, Address], ...] = ()
    pools: Mapping[str, str] = field(default_factory=dict)

    def ignores(self, text: str) -> bool:
        address = ip_address(text)
        return any(
            low.version == address.version and int(low) <= int(address) <= int(high) for low, high in self.ignored
        )


def parse_config(text: str, namespace: str) -> CloudConfig:
    """Raises Misconfigured naming the field. `namespace`: where Secrets and ConfigMaps are that name none."""
    found = parse_document(text, FILE)
    region, zone = _topology(object_at(found, "topologyDiscovery"))
    return CloudConfig(
        _central(object_at(found, "prismCentral"), namespace),
        namespace,
        region,
        zone,
        flag_at(found, "enableCustomLabeling"),
        tuple(_range(each, number) for number, each in enumerate(list_at(found, "ignoredNodeIPs"))),
        {name: str(pool) for name, pool in object_at(found, "addressPools").items()},
    )


def render_config(
    target: Target,
    bundle: bytes | None,
    *,
    secret: str,
    namespace: str,
    ignored: Sequence[str] = (),
    pools: Mapping[str, str] | None = None,
) -> str:
    """For a workload cluster, whose credentials are in `namespace`/`secret` there."""
    central: dict[str, Any] = {
        "address": target.address,
        "port": target.port,
        "insecure": target.insecure,
        "credentialRef": {"kind": "Secret", "name": secret, "namespace": namespace},
    }
    if bundle:
        central["additionalTrustBundle"] = {"kind": "String", "data": bundle.decode("ascii", "replace")}
    config: dict[str, Any] = {
        "prismCentral": central,
        "enableCustomLabeling": False,
        "topologyDiscovery": {"type": "Prism"},
        "ignoredNodeIPs": list(ignored),
    }
    if pools:
        config["addressPools"] = dict(pools)
    return json.dumps(config, indent=2, sort_keys=True) + "\n"


def render_credentials(credentials: Credentials) -> str:
    """The list that a Secret has under `credentials`."""
    if credentials.api_key:
        kind, central = "api_key", {"apiKey": credentials.api_key}
    else:
        kind, central = "basic_auth", {"username": credentials.username, "password": credentials.password}
    return json.dumps([{"type": kind, "data": {"prismCentral": central}}])


def _topology(found: Mapping[str, Any]) -> tuple[str, str]:
    kind = found.get("type") or "Prism"
    if kind not in ("Prism", "Categories"):
        raise Misconfigured(f"topologyDiscovery.type: must be Prism or Categories, not {kind!r}")
    if kind == "Prism":
        return "", ""
    categories = object_at(found, "topologyCategories", "topologyDiscovery.")
    for name in ("regionCategory", "zoneCategory"):
        if not categories.get(name):
            raise Misconfigured(f"topologyDiscovery.topologyCategories.{name}: is required with type Categories")
    return str(categories["regionCategory"]), str(categories["zoneCategory"])


def _central(found: Mapping[str, Any], namespace: str) -> PrismCentral:
    if not found.get("address"):
        raise Misconfigured("prismCentral.address: is required")
    port = found.get("port") or DEFAULT_PORT
    if not str(port).isdigit() or not 0 < int(port) < 65536:
        raise Misconfigured(f"prismCentral.port: must be a number from 1 to 65535, not {port!r}")
    ref = object_at(found, "credentialRef", "prismCentral.")
    if not ref.get("name"):
        raise Misconfigured("prismCentral.credentialRef.name: is required: the Secret with the credentials")
    bundle = object_at(found, "additionalTrustBundle", "prismCentral.")
    return PrismCentral(
        address=str(found["address"]),
        port=int(port),
        insecure=flag_at(found, "insecure", "prismCentral."),
        credential_ref=CredentialRef(name=str(ref["name"]), namespace=str(ref.get("namespace") or namespace)),
        additional_trust_bundle=_bundle(bundle, namespace) if bundle else None,
    )


def _bundle(found: Mapping[str, Any], namespace: str) -> TrustBundle:
    kind = str(found.get("kind") or "ConfigMap")
    needed = {"ConfigMap": "name", "String": "data"}.get(kind)
    if needed is None:
        raise Misconfigured(f"prismCentral.additionalTrustBundle.kind: must be ConfigMap or String, not {kind!r}")
    if not found.get(needed):
        raise Misconfigured(f"prismCentral.additionalTrustBundle.{needed}: is required with kind {kind}")
    return TrustBundle(
        kind=kind,
        name=str(found.get("name") or ""),
        namespace=str(found.get("namespace") or namespace),
        data=str(found.get("data") or ""),
    )


def _range(text: Any, number: int) -> tuple[Address, Address]:
    try:
        return parse_span(str(text))
    except ValueError as error:
        raise Misconfigured(f"ignoredNodeIPs[{number}]: {error}") from None
