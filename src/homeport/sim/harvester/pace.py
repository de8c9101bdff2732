"""How long things take on a Harvester cluster."""

from __future__ import annotations

from dataclasses import dataclass, fields

from homeport.sim.engine.progress import real_share


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds. `retry` is between two attempts to import an image."""

    download: float = 0.0  # import of an image, in five steps
    retry: float = 10.0
    bind: float = 0.0  # until a volume is bound
    launch: float = 0.0  # until the launcher Pod of a VM is ready
    start: float = 0.0  # from there until the VM runs
    agent: float = 0.0  # from there until the guest agent reports addresses
    shutdown: float = 0.0  # of a guest that is asked to end
    migrate: float = 0.0
    lost: float = 0.0  # until the VMs of a node that does not answer are given up

    def scaled(self, factor: float) -> Pace:
        """`factor` 0.5: twice as fast."""
        return Pace(**{each.name: getattr(self, each.name) * factor for each in fields(self)})


INSTANT = Pace()
REAL = Pace(download=90.0, bind=4.0, launch=8.0, start=4.0, agent=35.0, shutdown=8.0, migrate=20.0, lost=300.0)


def parse_speed(text: str) -> Pace:
    """`instant`, `real`, or `x10`: ten times faster than real."""
    share = real_share(text)
    if share is None:
        raise ValueError(f"{text!r} is not a valid speed: expected instant, real or x10")
    return REAL.scaled(share) if share else INSTANT
