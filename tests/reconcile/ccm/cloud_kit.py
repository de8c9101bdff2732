"""A cloud in memory, and Nodes on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from homeport.api.meta import Unstructured
from homeport.capi.cloud import Address, Balancer, CloudInstance
from homeport.ccm.node import UNINITIALIZED
from homeport.infra.error import ProviderError

NEW = {"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}


class MemoryCloud:
    """Machines by the name of their Node. `asked` is whom it was asked for."""

    def __init__(self, *names: str) -> None:
        self.machines = {
            name: CloudInstance(
                f"memory://{name}",
                "small",
                region="r1",
                zone="z1",
                addresses=(Address("InternalIP", f"10.0.0.{number}"), Address("Hostname", name)),
            )
            for number, name in enumerate(names, 1)
        }
        self.asked: list[str] = []
        self.error: ProviderError | None = None
        self.closed = False
        self.balancer: Balancer | None = None

    async def instance(self, node: Unstructured) -> CloudInstance | None:
        self.asked.append(node.name)
        if self.error is not None:
            raise self.error
        return self.machines.get(node.name)

    async def close(self) -> None:
        self.closed = True

    def change(self, name: str, **what: Any) -> None:
        self.machines[name] = replace(self.machines[name], **what)


def node(
    name: str, *, taints: Sequence[Mapping[str, Any]] = (NEW,), ready: bool = True, provider_id: str = ""
) -> dict[str, Any]:
    spec: dict[str, Any] = {"taints": list(taints)}
    if provider_id:
        spec["providerID"] = provider_id
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": spec,
        "status": {
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown", "reason": "Test"}],
            "addresses": [{"type": "Hostname", "address": name}],
        },
    }
