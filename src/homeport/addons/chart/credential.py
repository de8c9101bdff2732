"""Secrets that charts of the catalogue need, made from a Secret of the management cluster."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import orjson

from homeport.addons.catalogue import Entry
from homeport.addons.facts import render_text
from homeport.addons.problem import Problem
from homeport.addons.source import read_secret
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.client.protocol import Client

Json = dict[str, Any]


async def render_credentials(
    client: Client, addon: ClusterAddon, entry: Entry, data: Mapping[str, Any], namespace: str
) -> list[Json]:
    """Raises Problem. Nothing of the Secret is in its message."""
    wanted = entry.credentials
    if wanted is None:
        return []
    name, field = str(data["Parameters"][wanted.parameter]), f"spec.parameters.{wanted.parameter}"
    found = decoded(await read_secret(client, addon.metadata.namespace, name, field))
    where = f"{field}: Secret {addon.metadata.namespace}/{name}"
    if wanted.text:
        username, password = _account(found, where)
        more = {"Username": username, "Password": password, "PrismCentral": _prism_central(data)}
        value = render_text(wanted.text, {**data, **more}, field)
    else:
        key = next((each for each in wanted.source if each in found), "")
        if not key:
            raise Problem(
                "InvalidCredentials", f"{where} has no key {' or '.join(wanted.source)}: add it", warning=True
            )
        value = found[key]
    meta = {"name": wanted.target, "namespace": namespace}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque"}
    return [{**body, "data": {wanted.key: base64.b64encode(value.encode()).decode()}}]


def decoded(secret: Mapping[str, Any]) -> dict[str, str]:
    """What is text in a Secret."""
    found = {}
    for key, value in (secret.get("data") or {}).items():
        try:
            found[key] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, ValueError):
            continue
    return found


def _account(found: Mapping[str, str], where: str) -> tuple[str, str]:
    """From keys username and password, or from the JSON that NutanixClusters read."""
    if found.get("username") and found.get("password"):
        return found["username"], found["password"]
    try:
        for each in orjson.loads(found.get("credentials", "[]")):
            account = (each.get("data") or {}).get("prismCentral") or {}
            if account.get("username") and account.get("password"):
                return account["username"], account["password"]
    except (orjson.JSONDecodeError, AttributeError, TypeError):
        raise Problem("InvalidCredentials", f"{where}: key credentials is not valid JSON", warning=True) from None
    message = f"{where} has neither username and password nor credentials for Prism Central: add them"
    raise Problem("InvalidCredentials", message, warning=True)


def _prism_central(data: Mapping[str, Any]) -> str:
    spec = (data.get("InfrastructureCluster") or {}).get("spec") or {}
    return str((spec.get("prismCentral") or {}).get("address") or "")
