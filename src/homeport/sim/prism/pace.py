"""How long things take: by operation, and for the boot of a machine."""

from __future__ import annotations

import msgspec

from homeport.sim.engine.progress import AT_ONCE, Progress, parse_progress, real_share


class Pace(msgspec.Struct, frozen=True):
    default: Progress = AT_ONCE
    boot: Progress = AT_ONCE
    operations: dict[str, Progress] = {}

    def of(self, operation: str) -> Progress:
        return self.operations.get(operation, self.default)

    def faster(self, factor: float) -> Pace:
        return Pace(
            self.default.scaled(1 / factor),
            self.boot.scaled(1 / factor),
            {name: progress.scaled(1 / factor) for name, progress in self.operations.items()},
        )


INSTANT = Pace()
REAL = Pace(
    default=Progress(seconds=1.5, jitter=0.3),
    boot=Progress(seconds=30, jitter=0.3),
    operations={
        "kVmCreate": Progress(seconds=4, jitter=0.4),
        "kVmUpdate": Progress(seconds=2, jitter=0.3),
        "kVmDelete": Progress(seconds=4, jitter=0.4),
        "kVmPowerOn": Progress(seconds=3, jitter=0.3),
        "kVmPowerOff": Progress(seconds=3, jitter=0.3),
        "kImageCreate": Progress(seconds=45, jitter=0.5),
    },
)


def parse_speed(text: str) -> Pace:
    """`instant`, `real`, `x10` (ten times faster than real), or one progress for everything, such as `reads:3`."""
    share = real_share(text)
    if share is not None:
        return REAL.faster(1 / share) if share else INSTANT
    try:
        progress = parse_progress(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a valid speed: expected instant, real, x10, never, reads:3, 2s or 2s~30%"
        ) from None
    return Pace(default=progress, boot=progress if progress.reads is None else AT_ONCE)
