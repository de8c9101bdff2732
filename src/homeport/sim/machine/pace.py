"""How long things take inside machines: as long as on the real thing, or hardly at all."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field, replace

from homeport.sim.engine.progress import real_share


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds. `poll` and `patience`: how often programs look for something, and when they give up."""

    firmware: float = 0.0
    cloud_init: float = 0.0
    kubeadm: float = 0.0  # pulling images and starting a control plane
    kubelet: float = 0.0  # until a node registers
    poll: float = 0.5
    patience: float = 60.0
    restart: float = 10.0  # before systemd starts a service again that failed
    jitter: float = 0.0
    rng: random.Random = field(default_factory=random.Random, compare=False)

    async def take(self, seconds: float) -> None:
        if seconds:
            await asyncio.sleep(seconds * (1 + self.jitter * self.rng.uniform(-1, 1)))

    def scaled(self, factor: float) -> Pace:
        """`factor` 0.5: twice as fast. What is polled stays as it is."""
        return replace(
            self,
            firmware=self.firmware * factor,
            cloud_init=self.cloud_init * factor,
            kubeadm=self.kubeadm * factor,
            kubelet=self.kubelet * factor,
        )


QUICK = Pace()
REALISTIC = Pace(
    firmware=12.0, cloud_init=15.0, kubeadm=35.0, kubelet=8.0, poll=5.0, patience=300.0, restart=120.0, jitter=0.2
)


def pace_of(speed: str) -> Pace:
    """`instant`, `real` or `x10`; machines know no other speeds and are quick at those."""
    share = real_share(speed)
    return REALISTIC.scaled(share) if share else QUICK
