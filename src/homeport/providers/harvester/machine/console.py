"""The log of a VM's console, where KubeVirt keeps one: a container of the Pod that runs the VM."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.client.errors import ApiError
from homeport.client.http import HttpClient
from homeport.client.protocol import Key
from homeport.infra.error import ProviderError
from homeport.providers.harvester.infracluster.connection import HarvesterSession
from homeport.providers.harvester.infracluster.resource import POD

_CONTAINER = "guest-console-log"
_LINES = 200
_NAME = "vm.kubevirt.io/name"


async def read_console(session: HarvesterSession, vm: Key) -> Sequence[str]:
    """The newest lines; none where no log is kept, or the account may not read it."""
    if not isinstance(session.client, HttpClient):
        return ()
    try:
        for pod in await session.list(POD, vm.namespace, f"{_NAME}={vm.name}"):
            named = [each.get("name") for each in (pod.get("spec") or {}).get("containers") or ()]
            if _CONTAINER in named:
                path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/log"
                answer = await session.client.raw("GET", f"{path}?container={_CONTAINER}&tailLines={_LINES}")
                return answer.check(path).decode(errors="replace").splitlines()
    except (ApiError, ProviderError):
        return ()
    return ()
