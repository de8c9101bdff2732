"""Whether the API server can trust the webhooks that it has to ask, as its configurations of them show it."""

from __future__ import annotations

import base64
import binascii
import datetime
from collections.abc import Mapping
from typing import Any

from cryptography import x509

from homeport.api.meta import Unstructured
from homeport.client.errors import Forbidden, NotFound
from homeport.client.protocol import Client
from homeport.runtime.webhook.configuration import INJECT_ANNOTATION, MUTATING, VALIDATING


async def read_webhooks(client: Client) -> list[Unstructured]:
    """Configurations that replicas put their CA into. Users of clusters often may not see them."""
    found: list[Unstructured] = []
    for kind in (MUTATING, VALIDATING):
        try:
            listed = (await client.list(kind)).items
        except (Forbidden, NotFound):
            continue
        ours = (each for each in listed if INJECT_ANNOTATION in (each.metadata.get("annotations") or {}))
        found += [Unstructured({**kind.type_meta, **each}) for each in ours]
    return found


def distrust(configuration: Mapping[str, Any], now: float) -> str:
    """Why the API server rejects the certificate of every replica, and what to do; '' if it does not."""
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
    for webhook in configuration.get("webhooks") or ():
        bundle = (webhook.get("clientConfig") or {}).get("caBundle") or ""
        if why := _unusable(bundle, moment):
            namespace = configuration["metadata"]["annotations"][INJECT_ANNOTATION].partition("/")[0]
            return (
                f"{why} (caBundle of webhook {webhook.get('name')}), so the API server rejects writes. A running "
                f"replica of the controllers replaces it within seconds: check the Pods in namespace {namespace}"
            )
    return ""


def _unusable(bundle: str, now: datetime.datetime) -> str:
    if not bundle:
        return "the CA is missing"
    try:
        trusted = x509.load_pem_x509_certificates(base64.b64decode(bundle))
    except (ValueError, binascii.Error):
        return "the CA is not valid PEM"
    if (end := max(each.not_valid_after_utc for each in trusted)) <= now:
        return f"the CA expired on {end:%Y-%m-%d}"
    if (start := min(each.not_valid_before_utc for each in trusted)) > now:
        return f"the CA is valid from {start:%Y-%m-%d} only"
    return ""
