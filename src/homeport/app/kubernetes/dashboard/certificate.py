"""The certificates of the dashboard, which has no right to make any: the controllers issue and renew them.

A CA of its own signs one certificate. Its key and that of the certificate are Secrets next to the dashboard; the
certificate of the CA is a ConfigMap that every user may read. All of them belong to the ConfigMap of the dashboard and
are removed with it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from cryptography import x509

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.auth.certificate import Identity, load_private_key, same_key
from homeport.app.kubernetes.dashboard.place import AUTHORITY, CONFIG_MAP, KEY, NAMESPACE, hosts_of, names_of
from homeport.client.absence import find_object
from homeport.client.errors import ApiError
from homeport.client.protocol import Client, Key, Write
from homeport.runtime.webhook.authority import SECRET, Authority, GivenAuthorityError, SharedAuthority

log = structlog.get_logger(__name__)

_WRITE = Write(field_manager="homeport-dashboard")
_LOOK_SECONDS = 30.0


async def keep_certificates(client: Client) -> None:
    """Until cancelled. Does nothing on a cluster without the dashboard."""
    while True:
        try:
            await issue(client)
        except (ApiError, GivenAuthorityError) as error:
            log.warning("the certificates of the dashboard are not issued; retrying", error=str(error))
        await asyncio.sleep(_LOOK_SECONDS)


async def issue(client: Client) -> None:
    """Creates or renews what is missing or due. Raises ApiError and GivenAuthorityError; repeat it."""
    place = await find_object(client, CONFIG_MAP, KEY)
    if place is None:
        return
    owner = _owner(place)
    authority = SharedAuthority(client, AUTHORITY, owner=owner)
    held = await authority.ensure()
    await _hold(client, CONFIG_MAP, AUTHORITY, {"ca.crt": held.bundle.decode()}, owner)
    names = names_of(hosts_of(place))
    current = await find_object(client, SECRET, KEY)
    if current is not None and _serves(current, held, names, authority):
        return
    lifetime = authority.lifetime
    made = held.issuer.server(names, authority.now(), days=lifetime.leaf_days, skew=lifetime.skew)
    await _hold(client, SECRET, KEY, _data(made, held), owner, type="kubernetes.io/tls")
    log.info("certificate of the dashboard issued", names=names)


def _owner(place: Unstructured) -> dict[str, Any]:
    meta = place["metadata"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"]}


def _data(identity: Identity, held: Authority) -> dict[str, str]:
    raw = {"tls.crt": identity.certificate + held.chain, "tls.key": identity.key, "ca.crt": held.bundle}
    return {name: base64.b64encode(content).decode() for name, content in raw.items()}


def _serves(secret: Mapping[str, Any], held: Authority, names: Sequence[str], authority: SharedAuthority) -> bool:
    """Whether the certificate is good for a while, for these names, and of the CA that signs now."""
    data = secret.get("data") or {}
    try:
        leaf = x509.load_pem_x509_certificate(base64.b64decode(data["tls.crt"], validate=True))
        key = load_private_key(base64.b64decode(data["tls.key"], validate=True))
        leaf.verify_directly_issued_by(held.issuer.certificate)
        known = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (KeyError, ValueError, TypeError, binascii.Error, x509.ExtensionNotFound, x509.InvalidVersion):
        return False
    except Exception as error:  # of a signature, by the library in Rust
        log.info("the certificate of the dashboard is of another CA", error=str(error))
        return False
    found = {str(each.value) for each in known}
    due = authority.lifetime.leaf_due(leaf, authority.now())
    return same_key(key, leaf) and found == set(names) and not due


async def _hold(
    client: Client, kind: Resource, key: Key, data: dict[str, str], owner: dict[str, Any], **more: str
) -> None:
    found = await find_object(client, kind, key)
    if found is None:
        meta = {"name": key.name, "namespace": NAMESPACE, "ownerReferences": [owner]}
        await client.create(Unstructured(**kind.type_meta, metadata=meta, data=data, **more), _WRITE, kind=kind)
    elif found.get("data") != data:
        found["data"] = data
        found["metadata"]["ownerReferences"] = [owner]
        await client.replace(found, _WRITE, kind=kind)
