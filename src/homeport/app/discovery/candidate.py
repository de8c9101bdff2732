"""Objects of the plane that lead to a hypervisor: what a user can choose from before the hypervisor is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.butler.v1alpha1 import ProviderConfig
from homeport.api.k0rdent.v1beta1 import Credential
from homeport.api.meta import Resource, Unstructured
from homeport.app.discovery.source import SECRET, supports
from homeport.client.errors import ApiError
from homeport.client.protocol import Client, Query

_KEYS = {"nutanix": ("credentials", "NUTANIX_USER", "NUTANIX_API_KEY")}  # any of them
_MANAGED = "cluster.x-k8s.io/secret"  # type of the Secrets that controllers create


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Names, sorted. None: the user may not list them."""

    secret: tuple[str, ...] | None = None
    credential: tuple[str, ...] | None = None
    provider_config: tuple[str, ...] | None = None  # NAMESPACE/NAME
    address: tuple[str, ...] = ()  # of Prism Centrals that clusters use


async def find_candidates(client: Client, namespace: str, provider: str) -> Candidates:
    secrets = await _list(client, SECRET, namespace)
    keys = _KEYS.get(provider) or (supports()[provider].secret_key,)
    usable = [each for each in secrets or () if each.get("type") != _MANAGED and _has(each.get("data"), keys)]
    credentials = await _list(client, Credential.__resource__, namespace)
    configs = await _list(client, ProviderConfig.__resource__, "")
    infra = await _list(client, supports()[provider].cluster_kind, "")
    return Candidates(
        secret=None if secrets is None else _names(usable),
        credential=None if credentials is None else _names(credentials),
        provider_config=None if configs is None else tuple(sorted(f"{c.namespace}/{c.name}" for c in configs)),
        address=tuple(dict.fromkeys(filter(None, (_central(each) for each in infra or ())))),
    )


def _has(data: object, keys: tuple[str, ...]) -> bool:
    return isinstance(data, Mapping) and any(each in data for each in keys)


def _names(found: list[Unstructured]) -> tuple[str, ...]:
    return tuple(sorted(each.name for each in found))


def _central(infra: Mapping[str, Any]) -> str:
    central = (infra.get("spec") or {}).get("prismCentral") or {}
    port = central.get("port")
    return f"{central.get('address') or ''}" + (f":{port}" if port not in (None, 9440) else "")


async def _list(client: Client, kind: Resource, namespace: str) -> list[Unstructured] | None:
    try:
        return list((await client.list(kind, Query(namespace=namespace))).items)
    except ApiError:
        return None  # not for this user, or not installed: the answer is typed
