"""What Pods ask for, and what a node has left."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from homeport.machinery.quantity import parse_quantity
from homeport.sim.machine.workload.kind import Json


@dataclass(slots=True)
class Load:
    """One node: what it can give, what its Pods have taken."""

    room: dict[str, Decimal]
    most_pods: int
    pods: int = 0
    taken: dict[str, Decimal] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Json) -> Load:
        status = node.get("status") or {}
        room = _amounts(status.get("allocatable") or status.get("capacity") or {})
        return cls(room, int(room.pop("pods", Decimal(110))))

    def take(self, pod: Json) -> None:
        self.pods += 1
        for name, amount in requests(pod).items():
            self.taken[name] = self.taken.get(name, Decimal(0)) + amount

    def lacks(self, pod: Json) -> str:
        """What there is too little of for one more, as kube-scheduler says it; '' if there is enough."""
        if self.pods >= self.most_pods:
            return "Too many pods"
        for name, amount in sorted(requests(pod).items()):
            if amount > self.room.get(name, Decimal(0)) - self.taken.get(name, Decimal(0)):
                return f"Insufficient {name}"
        return ""


def requests(pod: Json) -> dict[str, Decimal]:
    """All containers run at once; those for the beginning one after the other."""
    spec = pod["spec"]
    total = _amounts(spec.get("overhead") or {})
    for each in spec["containers"]:
        for name, amount in _asked(each).items():
            total[name] = total.get(name, Decimal(0)) + amount
    for each in spec.get("initContainers") or ():
        for name, amount in _asked(each).items():
            total[name] = max(total.get(name, Decimal(0)), amount)
    return {name: amount for name, amount in total.items() if amount}


def _asked(container: Json) -> dict[str, Decimal]:
    resources = container.get("resources") or {}
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _amounts(given: Json) -> dict[str, Decimal]:
    return {name: parse_quantity(str(value)).amount for name, value in given.items()}
