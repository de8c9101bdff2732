"""What is asked of Prism Central, by whom and how often, while a cluster comes up, rests and goes.

    python bench/prism.py [--size 3+3] [--api v4|v3] [--slow SECONDS] [--minutes 10]

Everything runs in this process and in virtual time (the site of tests/scenario/nutanix, cloud controller manager
included), so that the counts are the same on a busy computer. `--slow`: every task of Prism Central takes so long.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests")]

from homeport.api.cluster.v1beta2 import Cluster  # noqa: E402
from homeport.providers.nutanix.client import Client  # noqa: E402
from homeport.runtime.testing import virtual  # noqa: E402
from homeport.sim.engine.progress import Progress  # noqa: E402
from homeport.sim.prism.pace import INSTANT, Pace  # noqa: E402
from scenario.nutanix import manifest  # noqa: E402
from scenario.nutanix.site import nutanix_site  # noqa: E402

_PROVIDER = "homeport/providers/nutanix/"
_WIRE = ("client.py", "prism/")


def caller() -> str:
    """The innermost function of the provider that is not about the wire."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        _, found, rest = frame.f_code.co_filename.partition(_PROVIDER)
        if found and not rest.startswith(_WIRE):
            return f"{rest.removesuffix('.py')}.{frame.f_code.co_qualname.rpartition('.')[2]}"
        frame = frame.f_back
    return "?"


class Counted:
    """Every call of every client, by who made it."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        plain = Client.call

        async def call(client: Client, method: str, path: str, **rest: Any) -> Any:
            self.calls[caller(), f"{method} {route(path)}"] += 1
            return await plain(client, method, path, **rest)

        Client.call = call  # type: ignore[method-assign, assignment]

    def show(self, title: str, machines: int) -> None:
        total = self.calls.total()
        print(f"\n{title}: {total} calls, {total / machines:.1f} per machine")
        for (who, what), count in self.calls.most_common():
            print(f"  {count:5}  {who:28} {what}")
        self.calls.clear()


def route(path: str) -> str:
    parts = path.split("/")
    return "/".join("*" if len(part) >= 36 else part for part in parts)


async def run(args: argparse.Namespace) -> None:
    control_planes, workers = (int(part) for part in args.size.split("+"))
    machines = control_planes + workers
    pace = Pace(default=Progress(seconds=args.slow)) if args.slow else INSTANT
    counted = Counted()
    async with nutanix_site(v4=args.api == "v4", pace=pace) as site:
        await site.have(*manifest.cluster_objects("one", control_planes, workers))
        await site.running("one", control_planes, workers)
        counted.show("until all run", machines)
        await asyncio.sleep(60)
        counted.calls.clear()
        await asyncio.sleep(args.minutes * 60)
        counted.show(f"{args.minutes} minutes at rest", machines)
        await site.delete(Cluster, "one")
        await site.gone(Cluster, "one")
        counted.show("until all is gone", machines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="3+3", help="control planes + workers")
    parser.add_argument("--api", choices=("v4", "v3"), default="v4")
    parser.add_argument("--slow", type=float, default=0.0, metavar="SECONDS", help="how long each task takes")
    parser.add_argument("--minutes", type=int, default=10, help="how long it rests")
    virtual(run)(parser.parse_args())


if __name__ == "__main__":
    main()
