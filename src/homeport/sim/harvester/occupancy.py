"""What the Pods of each node ask for, kept up to date as they come and go."""

from __future__ import annotations

from decimal import Decimal

from homeport.sim.harvester.kind import Json
from homeport.sim.harvester.object import status_of
from homeport.sim.machine.workload.pod.load import Load, requests

_FINAL = ("Succeeded", "Failed")


class Occupancy:
    def __init__(self) -> None:
        self._held: dict[str, tuple[str, dict[str, Decimal]]] = {}  # by Pod
        self._taken: dict[str, dict[str, Decimal]] = {}  # by node
        self._pods: dict[str, int] = {}

    def follow(self, key: str, new: Json | None, old: Json | None) -> None:
        """A follower of Pods."""
        del old
        node = "" if new is None or status_of(new).get("phase") in _FINAL else str(new["spec"].get("nodeName") or "")
        held = self._held.get(key)
        if held is not None and held[0] != node:
            self.free(key)
        if node and new is not None and key not in self._held:
            self.take(key, node, new)

    def take(self, key: str, node: str, pod: Json) -> None:
        """Also before the Pod is written: two that are placed at once don't get the same room."""
        amounts = requests(pod)
        self._held[key] = (node, amounts)
        self._pods[node] = self._pods.get(node, 0) + 1
        taken = self._taken.setdefault(node, {})
        for name, amount in amounts.items():
            taken[name] = taken.get(name, Decimal(0)) + amount

    def free(self, key: str) -> None:
        node, amounts = self._held.pop(key)
        self._pods[node] -= 1
        for name, amount in amounts.items():
            self._taken[node][name] -= amount

    def load(self, node: Json) -> Load:
        name = node["metadata"]["name"]
        load = Load.of(node)
        load.pods, load.taken = self._pods.get(name, 0), self._taken.get(name, {})
        return load
