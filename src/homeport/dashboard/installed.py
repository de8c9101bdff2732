"""The dashboard of an installation, as a user finds it with their own rights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.meta import Resource
from homeport.app.kubernetes.dashboard.place import AUTHORITY, CONFIG_MAP, KEY, NAMESPACE, PLACE, USER_ROLE, hosts_of
from homeport.app.kubernetes.workload import selector
from homeport.client.absence import find_object
from homeport.client.errors import Forbidden
from homeport.client.protocol import Client, Key, Query
from homeport.dashboard.login import LoginError
from homeport.dashboard.page import BASE

_POD = Resource("", "v1", "Pod", "pods")


@dataclass(frozen=True, slots=True)
class Installed:
    address: str  # '': only the API server leads there
    ca: str  # PEM


async def find(client: Client) -> Installed | None:
    """None: it is not installed, or this user may not know. Raises ApiError, and LoginError before its first start."""
    try:
        place = await find_object(client, CONFIG_MAP, KEY)
        held = await find_object(client, CONFIG_MAP, AUTHORITY)
    except Forbidden:
        return None
    if place is None:
        return None
    ca = str((held.get("data") or {}).get("ca.crt", "")) if held is not None else ""
    if not ca:
        raise LoginError(
            f"the dashboard is installed, but has no certificate yet: the controllers create ConfigMap {AUTHORITY} "
            "when they run; see 'kubectl get pods -n homeport-system'"
        )
    hosts = hosts_of(place)
    return Installed(f"https://{hosts[0]}{BASE}" if hosts else "", ca)


async def find_pod(client: Client, hint: str) -> Key:
    """One that is ready. `hint` is the command that needs none. Raises ApiError and LoginError."""
    labels = ",".join(f"{name}={value}" for name, value in selector(PLACE).items())
    try:
        found = (await client.list(_POD, Query(namespace=NAMESPACE, labels=labels))).items
    except Forbidden as error:
        raise LoginError(
            f"the dashboard has no address outside of the cluster, and you may not forward its port ({error}). Serve "
            f"it from here with '{hint}', or ask an administrator to bind Role {NAMESPACE}/{USER_ROLE} to you"
        ) from error
    ready = [each for each in found if _is_ready(each)]
    if not ready:
        raise LoginError(
            f"no Pod of the dashboard is ready: see 'kubectl describe pods -n {NAMESPACE}', or serve it from here with "
            f"'{hint}'"
        )
    return Key(NAMESPACE, ready[0].name)


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
