"""Pods of Homeport in simulated clusters: no image runs there, so the controllers of this release do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from homeport.app.kubernetes.layout import find_placement
from homeport.app.kubernetes.manager import Cluster, Replica
from homeport.app.kubernetes.webhook import WebhookSettings
from homeport.app.platform import Platform, chosen
from homeport.app.report.description import Description
from homeport.app.report.part import Part
from homeport.capi.chartsettings import ChartSettings
from homeport.client.dial import DialOptions
from homeport.client.http import HttpClient
from homeport.runtime.task import cancel

if TYPE_CHECKING:  # planes that simulate nothing don't load simulators
    from homeport.sim.machine.workload.pod.container import Program, Programs, Run

_PROBE_SECONDS = 1.0

Dial = Callable[[str], DialOptions]


def programs(dial: Dial) -> Programs:
    """What containers of simulated clusters run. `dial` says how hypervisors are dialled from a machine."""

    def find(container: Mapping[str, Any]) -> Run | None:
        if not is_manager(words_of(container)):
            return None
        return lambda program: _run(program, dial(program.host))

    return find


def first_of(*others: Programs) -> Programs:
    """The first that has a program for a container."""

    def find(container: Mapping[str, Any]) -> Run | None:
        return next((run for each in others if (run := each(container)) is not None), None)

    return find


def words_of(container: Mapping[str, Any]) -> list[str]:
    return [*(container.get("command") or ()), *(container.get("args") or ())]


def is_manager(words: Sequence[str]) -> bool:
    """Known by its arguments: the image may be one of a mirror."""
    return "up" in words[:2] and "--kubernetes" in words


async def _run(program: Program, dial: DialOptions) -> None:
    """As `homeport up --kubernetes` does it. Raises the error that ends it."""
    client, meta = program.client, program.pod["metadata"]
    assert isinstance(client, HttpClient)
    platform, cluster = read_words(program.args, str(meta["namespace"]))
    env = {each["name"]: str(each.get("value", "")) for each in program.container.get("env") or ()}
    cluster = replace(
        cluster,
        dial=dial,
        charts=ChartSettings(mirror=cluster.charts.mirror, simulated=True, dial=dial),
        ccm_image=env.get("HOMEPORT_CCM_IMAGE", ""),
        identity=str(meta["name"]),
    )
    program.collect()  # controllers rely on it
    if (port := port_of(program.args)) is not None:
        listening = partial(_publish, program, port)
        cluster = replace(cluster, webhook=WebhookSettings(("127.0.0.1", 0), announce=listening))
    with structlog.contextvars.bound_contextvars(pod=f"{meta['namespace']}/{meta['name']}"):
        replica = Replica(client, cluster, cluster.namespace, PodLog(program.log), platform, program.clock)
        probing = asyncio.create_task(_probe(program, replica), name="readiness of a simulated Pod")
        try:
            await replica.run()
        finally:
            await cancel(probing)


def _publish(program: Program, port: int, address: tuple[str, int]) -> None:
    from homeport.sim.network.service import Loopback

    program.listen(port, Loopback(*address))


async def _probe(program: Program, replica: Replica) -> None:
    while True:
        program.ready(not replica.unready)
        await asyncio.sleep(_PROBE_SECONDS)


def port_of(words: Sequence[str]) -> int | None:
    """Of --webhook-listen. None: webhooks are not served."""
    given = next((each for each in words if each.startswith("--webhook-listen=")), "")
    return int(given.rpartition(":")[2]) if given else None


def read_words(words: Sequence[str], namespace: str) -> tuple[Platform, Cluster]:
    """Raises PluginError and LayoutError. Options about the process itself, such as --log-level, have no effect."""
    options = [each.partition("=")[::2] for each in words if each.startswith("--")]
    given = dict(options)
    platform = chosen(
        plugins=[value for name, value in options if name == "--plugin"],
        without=[value for name, value in options if name == "--without"],
    )
    cluster = Cluster(None, namespace=given.get("--namespace") or namespace, shards="--shards" in given)
    if deployment := given.get("--deployment"):
        platform = replace(platform, placement=find_placement(platform.components, deployment))
        place, lease = platform.placement.lease
        cluster = replace(cluster, namespace=given.get("--namespace") or place, lease=lease)
    return platform, replace(cluster, charts=ChartSettings(mirror=given.get("--chart-mirror", "")))


@dataclass(frozen=True, slots=True)
class PodLog:
    """What the process would print: `kubectl logs` shows it."""

    write: Callable[[str], None]

    def say(self, text: str) -> None:
        self.write(text)

    def ready(self, url: str) -> None:
        self.write(f"Homeport runs its controllers on the cluster at {url}")

    def changed(self, part: Part) -> None:
        more = f": {part.error}" if part.state == "waiting" else ""
        self.write(f"{part.name}: {part.state}{more}")

    async def follow(self, describe: Callable[[], Description]) -> None:
        await asyncio.Event().wait()
