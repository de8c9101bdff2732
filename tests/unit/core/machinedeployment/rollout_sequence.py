"""The rollouts that a MachineDeployment has to get right, as data: sizes, limits, and what changes on the way.

`in_place`: Machines could be changed rather than replaced. Replacing them has to end in the same state, within the
same limits. `random`: controllers get their turn in any order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Sequence:
    replicas: int
    surge: int = 0
    unavailable: int = 0
    strategy: str = "RollingUpdate"
    deletes: int = 0  # OnDelete: so many Machines does the user delete at a time
    scale_to: int = 0  # replicas from the middle on
    change_spec: bool = False  # a third template comes in the middle
    in_place: bool = False
    random: bool = False

    @property
    def name(self) -> str:
        if self.strategy == "OnDelete":
            text = f"{self.replicas} replicas, maxuserunavailable {self.deletes}"
            gap = ",  " if self.scale_to and self.scale_to < self.replicas else ", "
        else:
            kind = "in-place" if self.in_place else "regular"
            text = f"{kind} rollout, {self.replicas} replicas, maxsurge {self.surge}, maxunavailable {self.unavailable}"
            gap = ", "
        if self.scale_to:
            text += f"{gap}scale {'up' if self.scale_to > self.replicas else 'down'} to {self.scale_to}"
        if self.change_spec:
            text += ", change spec"
        return text + (", random(0)" if self.random else "")


_ROLLING = [
    Sequence(3, 1, 0),
    Sequence(3, 0, 1),
    Sequence(6, 3, 1),
    Sequence(6, 1, 3),
    Sequence(6, 10, 0),
    Sequence(6, 0, 10),
    Sequence(6, 3, 1, scale_to=12),
    Sequence(12, 3, 1, scale_to=6),
    Sequence(6, 3, 1, change_spec=True),
]
_ON_DELETE = [
    Sequence(3, strategy="OnDelete", deletes=1),
    Sequence(6, strategy="OnDelete", deletes=2),
    Sequence(6, strategy="OnDelete", deletes=1, scale_to=9),
    Sequence(12, strategy="OnDelete", deletes=1, scale_to=6),
    Sequence(6, strategy="OnDelete", deletes=1, change_spec=True),
]


def _both_orders(sequences: list[Sequence]) -> list[Sequence]:
    return [replace(each, random=random) for each in sequences for random in (False, True)]


SEQUENCES = _both_orders([*_ROLLING, *(replace(each, in_place=True) for each in _ROLLING), *_ON_DELETE])
