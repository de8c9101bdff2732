"""How a ClusterDeployment reaches its infrastructure: Secret and CA certificates, read from objects of users."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography import x509

from homeport.api.k0rdent.v1beta1 import ClusterDeployment, Credential
from homeport.api.meta import Resource
from homeport.client.absence import find_object
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key
from homeport.platforms.k0rdent.cluster.config import ClusterConfig
from homeport.platforms.k0rdent.cluster.reading import ROOT
from homeport.platforms.k0rdent.deployment.state import CREDENTIAL, PREDECLARED, Finding, failed, good
from homeport.platforms.k0rdent.management.credential import SECRET, identity_error, identity_key

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
_FIRST_KEY = "ca.crt"


@dataclass(frozen=True, slots=True)
class Found:
    """What was looked for; '' or None if it was not found, and the finding says why."""

    finding: Finding
    secret: Key | None = None
    bundle: str = ""


async def find_secret(
    client: Client, deployment: ClusterDeployment, credential: Credential | None, config: ClusterConfig
) -> Found:
    """The Credential of the spec, then the Secret of the values, then that of the whole installation."""
    namespace, name = deployment.metadata.namespace, deployment.spec.credential
    vendor, secret = config.chart.vendor, config.infrastructure.secret
    if name:
        if credential is None:
            text = (
                f'spec.credential: Credential "{name}" does not exist in namespace {namespace}: create it, or leave '
                f"spec.credential out to use Secret {vendor.secrets[0]}"
            )
            return Found(failed(CREDENTIAL, text))
        return await _of_credential(client, credential)
    if secret:
        key = Key(namespace, secret)
        if await _exists(client, key):
            return Found(good(CREDENTIAL, f"Secret {key} is used"), key)
        field = f"{ROOT}.{vendor.name}.{vendor.credential_field}"
        return Found(failed(CREDENTIAL, f"{field}: Secret {key} does not exist: create it"))
    for key in vendor.secrets:
        if await _exists(client, key):
            return Found(good(CREDENTIAL, f"Secret {key} is used"), key)
    text = (
        f"no credentials: set spec.credential to a Credential, or create Secret {vendor.secrets[0]} with the key "
        f"{vendor.credential_key}"
    )
    return Found(failed(CREDENTIAL, text))


async def _of_credential(client: Client, credential: Credential) -> Found:
    ref, key = credential.spec.identity_ref, identity_key(credential)
    name = credential.metadata.name
    if wrong := identity_error(credential):
        return Found(failed(CREDENTIAL, f"Credential {name}: {wrong}"))
    if ref.kind != "Secret":
        return Found(failed(CREDENTIAL, f"Credential {name}: the identity must be a Secret, not a {ref.kind}"))
    if not await _exists(client, key):
        return Found(
            failed(CREDENTIAL, f"Credential {name}: Secret {key} of spec.identityRef does not exist: create it")
        )
    return Found(good(CREDENTIAL, "Credential is ready"), key)


async def _exists(client: Client, key: Key) -> bool:
    try:
        await client.get(SECRET, key)
    except NotFound:
        return False
    return True


async def find_bundle(client: Client, namespace: str, config: ClusterConfig) -> Found:
    """CA certificates of a ConfigMap. A text that is not a certificate is reported here, not by a TLS error later."""
    name, vendor = config.infrastructure.bundle, config.chart.vendor
    if not name:
        return Found(good(PREDECLARED))
    key, field = Key(namespace, name), f"{ROOT}.{vendor.name}.{vendor.bundle_field}"
    found = await find_object(client, CONFIG_MAP, key)
    if found is None:
        return Found(failed(PREDECLARED, f"{field}: ConfigMap {key} does not exist: create it"))
    try:
        text = bundle_of(found)
    except ValueError as error:
        return Found(failed(PREDECLARED, f"{field}: ConfigMap {key}: {error}"))
    return Found(good(PREDECLARED), bundle=text)


def bundle_of(config_map: Mapping[str, Any]) -> str:
    """Key ca.crt, or the only key that ends in .crt. Raises ValueError."""
    texts = dict(config_map.get("data") or {})
    for name, value in (config_map.get("binaryData") or {}).items():
        try:
            texts[name] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise ValueError(f"key {name} is not text") from None
    names = [_FIRST_KEY] if _FIRST_KEY in texts else [name for name in texts if name.endswith(".crt")]
    if len(names) != 1:
        seen = ", ".join(sorted(texts)) or "none"
        raise ValueError(f"expected the key {_FIRST_KEY}, or one key that ends in .crt; keys are {seen}")
    text = str(texts[names[0]])
    try:
        if not x509.load_pem_x509_certificates(text.encode()):
            raise ValueError
    except ValueError:
        raise ValueError(
            f"key {names[0]} does not hold a valid certificate in PEM format: replace the placeholder with the CA "
            "certificate of Prism Central"
        ) from None
    return text
