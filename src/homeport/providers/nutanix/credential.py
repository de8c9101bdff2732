"""Credentials and endpoints as users write them: Secrets, ConfigMaps and what a NutanixCluster says of them.

Secrets and ConfigMaps of users are read, never owned and never deleted; several clusters may share one.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.nutanix.v1beta1 import CredentialRef, NutanixCluster, PrismCentral, TrustBundle
from homeport.capi.cloud import Sources
from homeport.client.protocol import Key
from homeport.infra.error import Misconfigured
from homeport.providers.nutanix.client import Credentials

# Where the whole installation's credentials and endpoint are.
GLOBAL_NAMESPACE = "capx-system"
GLOBAL_SECRET = Key(GLOBAL_NAMESPACE, "nutanix-creds")
GLOBAL_ENDPOINT = Key(GLOBAL_NAMESPACE, "nutanix-endpoint")
_ENDPOINT_KEY = "prismCentral"
_BUNDLE_KEYS = ("ca.crt", "ca-bundle.crt")
DEFAULT_PORT = 9440
TRUST = "spec.prismCentral.additionalTrustBundle"
# What a ClusterClass renders for the name of a bundle if the Cluster sets no such variable. No object is called so.
_UNSET = "<no value>"


@dataclass(frozen=True, slots=True)
class Target:
    """Where to connect, and by which objects. Read from the NutanixCluster alone."""

    address: str
    port: int
    insecure: bool
    secret: Key
    bundle: Key | None = None
    inline_bundle: str = ""
    trust: str = TRUST  # where users set the CA of Prism Central, for messages


def sources_of(infra: NutanixCluster) -> Sources:
    central = infra.spec.prism_central
    if central is None:
        return Sources((GLOBAL_SECRET,), (GLOBAL_ENDPOINT,))
    target = target_of(central, infra.metadata.namespace)
    return Sources((target.secret,), (target.bundle,) if target.bundle else ())


def target_of(central: PrismCentral, namespace: str) -> Target:
    """Names without a namespace are in the cluster's own; without a credentialRef the installation's Secret counts."""
    secret = _secret_key(central.credential_ref, namespace)
    bundle = central.additional_trust_bundle
    return Target(
        central.address,
        central.port or DEFAULT_PORT,
        central.insecure,
        secret,
        _bundle_key(bundle, namespace) if bundle else None,
        bundle.data if bundle and bundle.kind == "String" else "",
    )


def parse_settings(settings: Mapping[str, Any]) -> Target:
    """Plain settings: address (required), port, insecure and additionalTrustBundle, a PEM text."""
    address, port = str(settings.get("address") or ""), str(settings.get("port") or DEFAULT_PORT)
    if not address:
        raise Misconfigured("address: the address of Prism Central is required")
    if not port.isdigit():
        raise Misconfigured(f"port: must be a number, not {port!r}")
    insecure, bundle = bool(settings.get("insecure")), str(settings.get("additionalTrustBundle") or "")
    return Target(address, int(port), insecure, Key("", ""), inline_bundle=bundle)


def _bundle_key(bundle: TrustBundle, namespace: str) -> Key | None:
    named = bundle.kind == "ConfigMap" and bundle.name != _UNSET
    return Key(bundle.namespace or namespace, bundle.name) if named else None


def _secret_key(ref: CredentialRef | None, namespace: str) -> Key:
    return GLOBAL_SECRET if ref is None else Key(ref.namespace or namespace, ref.name)


def parse_global(config_map: Mapping[str, Any] | None, secret: Mapping[str, Any] | None) -> PrismCentral:
    """The endpoint of clusters that name none: ConfigMap nutanix-endpoint, or the NUTANIX_* keys of the Secret."""
    text = ((config_map or {}).get("data") or {}).get(_ENDPOINT_KEY, "")
    if text:
        return _parse_endpoint(text)
    found = _decoded(secret or {})
    address = found.get("NUTANIX_ENDPOINT", "")
    if not address:
        raise Misconfigured(
            "spec.prismCentral is not set, and the installation has no endpoint: set spec.prismCentral, "
            f"or create ConfigMap {GLOBAL_ENDPOINT} with key {_ENDPOINT_KEY}"
        )
    port = found.get("NUTANIX_PORT", "") or str(DEFAULT_PORT)
    if not port.isdigit():
        raise Misconfigured(f"Secret {GLOBAL_SECRET}: NUTANIX_PORT must be a number, not {port!r}")
    insecure = found.get("NUTANIX_INSECURE", "").strip().lower() in ("true", "1", "yes")
    return PrismCentral(address=address, port=int(port), insecure=insecure)


def _parse_endpoint(text: str) -> PrismCentral:
    where = f"ConfigMap {GLOBAL_ENDPOINT}, key {_ENDPOINT_KEY}"
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Misconfigured(f"{where}: is not valid JSON: {error}") from None
    if not isinstance(found, dict) or not found.get("address"):
        raise Misconfigured(f"{where}: address is required")
    ref, bundle = found.get("credentialRef") or {}, found.get("additionalTrustBundle") or {}
    return PrismCentral(
        address=str(found["address"]),
        port=int(found.get("port") or DEFAULT_PORT),
        insecure=bool(found.get("insecure")),
        credential_ref=CredentialRef(name=ref["name"], namespace=ref.get("namespace") or GLOBAL_NAMESPACE)
        if ref.get("name")
        else None,
        additional_trust_bundle=TrustBundle(
            kind=str(bundle.get("kind") or "ConfigMap"),
            name=str(bundle.get("name") or ""),
            namespace=str(bundle.get("namespace") or GLOBAL_NAMESPACE),
            data=str(bundle.get("data") or ""),
        )
        if bundle
        else None,
    )


def parse_credentials(secret: Mapping[str, Any], key: Key) -> Credentials:
    """Of the list `credentials` the first entry; or NUTANIX_USER and NUTANIX_PASSWORD, or NUTANIX_API_KEY.

    Messages never show what is in a Secret.
    """
    return read_credentials(_decoded(secret), f"Secret {key}")


def read_credentials(found: Mapping[str, str], origin: str) -> Credentials:
    """From the decoded data of a Secret. `origin` names it in messages."""
    if "credentials" in found:
        return _parse_list(found["credentials"], origin)
    if found.get("NUTANIX_API_KEY"):
        return Credentials(api_key=found["NUTANIX_API_KEY"], origin=origin)
    user, password = found.get("NUTANIX_USER", ""), found.get("NUTANIX_PASSWORD", "")
    if user and password:
        return Credentials(user, password, origin=origin)
    raise Misconfigured(
        f"{origin} has no credentials: add the key `credentials` (a JSON list), or NUTANIX_USER and "
        "NUTANIX_PASSWORD, or NUTANIX_API_KEY"
    )


def _parse_list(text: str, origin: str) -> Credentials:
    try:
        listed = json.loads(text)
    except ValueError as error:
        # The text itself holds a password: only the place is named.
        place = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise Misconfigured(f"{origin}, key credentials: is not valid JSON{place}") from None
    if not isinstance(listed, list) or not listed or not isinstance(listed[0], dict):
        raise Misconfigured(f"{origin}, key credentials: must be a list with one entry")
    kind = listed[0].get("type")
    central = (listed[0].get("data") or {}).get("prismCentral") or {}
    if kind == "basic_auth":
        user, password = str(central.get("username") or ""), str(central.get("password") or "")
        if not user or not password:
            raise Misconfigured(f"{origin}, key credentials: data.prismCentral needs username and password")
        return Credentials(user, password, origin=origin)
    if kind == "api_key":
        if not central.get("apiKey"):
            raise Misconfigured(f"{origin}, key credentials: data.prismCentral needs apiKey")
        return Credentials(api_key=str(central["apiKey"]), origin=origin)
    raise Misconfigured(f"{origin}, key credentials: type must be basic_auth or api_key, not {kind!r}")


def parse_bundle(config_map: Mapping[str, Any], key: Key) -> bytes | None:
    """None where the key is there and empty: templates write it so for clusters that need no bundle."""
    data, binary = config_map.get("data") or {}, config_map.get("binaryData") or {}
    for name in _BUNDLE_KEYS:
        if str(data.get(name) or "").strip():
            return str(data[name]).encode()
        if binary.get(name):
            return _decoded_bundle(binary[name], key, name)
    if any(name in data or name in binary for name in _BUNDLE_KEYS):
        return None
    raise Misconfigured(f"ConfigMap {key} has no trust bundle: add the key {' or '.join(_BUNDLE_KEYS)}")


def _decoded_bundle(text: str, key: Key, name: str) -> bytes | None:
    try:
        return base64.b64decode(text).strip() or None
    except binascii.Error as error:
        raise Misconfigured(f"ConfigMap {key}: binaryData[{name}] is not valid base64: {error}") from None


def _decoded(secret: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in (secret.get("data") or {}).items():
        try:
            found[name] = base64.b64decode(value).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            continue  # made by somebody else
    return found
