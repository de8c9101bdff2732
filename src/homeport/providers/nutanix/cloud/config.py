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
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Misconfigured(f"{FILE} is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise Misconfigured(f"{FILE}: must be an object, not {_kind(found)}")
    region, zone = _topology(_object(found, "topologyDiscovery"))
    return CloudConfig(
        _central(_object(found, "prismCentral"), namespace),
        namespace,
        region,
        zone,
        _flag(found, "enableCustomLabeling"),
        tuple(_range(each, number) for number, each in enumerate(_list(found, "ignoredNodeIPs"))),
        {name: str(pool) for name, pool in _object(found, "addressPools").items()},
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
    categories = _object(found, "topologyCategories", "topologyDiscovery.")
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
    ref = _object(found, "credentialRef", "prismCentral.")
    if not ref.get("name"):
        raise Misconfigured("prismCentral.credentialRef.name: is required: the Secret with the credentials")
    bundle = _object(found, "additionalTrustBundle", "prismCentral.")
    return PrismCentral(
        address=str(found["address"]),
        port=int(port),
        insecure=_flag(found, "insecure", "prismCentral."),
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


def _object(found: Mapping[str, Any], name: str, inside: str = "") -> Mapping[str, Any]:
    value = found.get(name)
    if value is not None and not isinstance(value, dict):
        raise Misconfigured(f"{inside}{name}: must be an object, not {_kind(value)}")
    return value or {}


def _list(found: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = found.get(name)
    if value is not None and not isinstance(value, list):
        raise Misconfigured(f"{name}: must be a list, not {_kind(value)}")
    return value or ()


def _flag(found: Mapping[str, Any], name: str, inside: str = "") -> bool:
    value = found.get(name)
    if value is not None and not isinstance(value, bool):
        raise Misconfigured(f"{inside}{name}: must be true or false, not {value!r}")
    return bool(value)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number")
