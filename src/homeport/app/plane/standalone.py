"""The plane on one machine: an embedded API server on a data directory, until told to stop."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
import structlog

from homeport import __version__
from homeport.apiserver.auth.file import make_private_dir
from homeport.apiserver.embedded import EmbeddedServer
from homeport.app.backup.copy import copy_database, copy_volumes
from homeport.app.backup.folder import FolderBackups
from homeport.app.backup.note import last_backup
from homeport.app.hint import on_data, up_command
from homeport.app.memory import frugal
from homeport.app.object.deployment import Deployments
from homeport.app.object.pod import Components
from homeport.app.plane.earlier import Earlier, read_earlier, write_earlier
from homeport.app.plane.housekeeping import LogFile, keep_house
from homeport.app.plane.instance import (
    BACKUP_PATH,
    SIMULATOR_PATH,
    STATUS_PATH,
    Claim,
    Instance,
    remove_instance,
    write_instance,
)
from homeport.app.plane.server import StartError, renew_certificates, start
from homeport.app.plane.show import Show, stop_event
from homeport.app.plane.standby import Standby
from homeport.app.plane.supervisor import Supervisor
from homeport.app.plane.web import Web, serve_page
from homeport.app.platform import Platform
from homeport.app.report.describe import describe
from homeport.app.report.description import Description
from homeport.app.report.expiry import certificates
from homeport.app.report.part import Part
from homeport.app.settings import Settings
from homeport.app.simulation.event import SimulatorEvents
from homeport.app.worker.crew import Worker, forget_workers
from homeport.app.worker.message import Order
from homeport.builtin.install import install as install_builtin
from homeport.builtin.workload.address import Pool, ServiceOptions
from homeport.builtin.workload.binary import BinariesMissing, BinaryRunner
from homeport.builtin.workload.process import end_leftovers
from homeport.capi.chartsettings import ChartSettings
from homeport.capi.environment import Environment
from homeport.client.config import Config
from homeport.client.dial import DialOptions
from homeport.runtime.manager import Manager
from homeport.runtime.telemetry.stream import LogStreams
from homeport.runtime.workload.runner import Runners

if TYPE_CHECKING:
    from homeport.app.simulation.simulation import Simulation

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Choice:
    """What workers are started with besides the settings: they choose their components themselves."""

    plugins: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    log_level: str = "info"


async def run(
    settings: Settings,
    show: Show,
    platform: Platform | None = None,
    streams: LogStreams | None = None,
    choice: Choice | None = None,
    web: Web | None = None,
) -> None:
    """Starts, tells `show`, and returns after SIGTERM or SIGINT, with everything finished and closed.

    `streams` are the lines of the controllers, which Pods then serve. `web` is the dashboard.
    """
    stopping = stop_event()
    streams = streams or LogStreams()
    make_private_dir(settings.data)
    claim = Claim(settings.data)
    try:
        async with _simulated(settings, streams) as simulation:
            plane = Plane(settings, platform or Platform(), simulation, streams, choice, web)
            await plane.run(show, stopping)
    finally:
        claim.release()


@asynccontextmanager
async def _simulated(settings: Settings, streams: LogStreams) -> AsyncIterator[Simulation | None]:
    """The simulators, if there are to be any: before everything that dials and after it."""
    if settings.simulators is None:
        yield None
        return
    from homeport.app.simulation.simulation import Simulation, SimulationError  # not for planes that simulate nothing

    try:
        simulation = Simulation(settings.simulated, settings.simulators, streams)
        try:
            await simulation.start()
            yield simulation
        finally:
            await simulation.close()
    except SimulationError as error:
        raise StartError(str(error)) from error


class Plane:
    """What runs in one process, and what it tells about itself."""

    def __init__(
        self,
        settings: Settings,
        platform: Platform,
        simulation: Simulation | None,
        streams: LogStreams,
        choice: Choice | None = None,
        web: Web | None = None,
    ) -> None:
        self._settings = settings
        self._web = web
        self._platform = platform
        self._simulation = simulation
        self._streams = streams
        self._binaries = find_binaries(settings)
        self._standby: Standby | None = None
        self._choice = choice or Choice()
        self._workers: list[Worker] = []

    async def run(self, show: Show, stopping: asyncio.Event) -> None:
        dial = self._dial
        server = await start(self._settings, self._platform, dial)
        try:
            environment = Environment(
                server.client(),
                dial,
                server,
                charts=self._charts(dial),
                images=self._settings.images,
                ccm_image=self._settings.ccm_image,
                backups=FolderBackups(self._settings, lambda: self._copy(server)),
            )
            await forget_workers(server.client())
            parts = self._parts(server, environment, show.changed)
            await self._work(server, show, parts, stopping)
        finally:
            remove_instance(self._settings.data)
            await server.close()

    @property
    def _dial(self) -> DialOptions:
        return self._simulation.dial if self._simulation is not None else self._settings.dial

    def _charts(self, dial: DialOptions) -> ChartSettings:
        """In simulation, registries are those of the simulated network, unless the user names a mirror."""
        found = self._settings.charts
        return found if self._simulation is None or found.mirror else replace(found, dial=dial)

    async def _work(self, server: EmbeddedServer, show: Show, parts: Supervisor, stopping: asyncio.Event) -> None:
        assert server.http is not None
        server.http.root.act(STATUS_PATH, lambda: self._answer(server, parts))
        server.http.root.act(BACKUP_PATH, lambda: self._copy(server))
        if self._simulation is not None:
            from homeport.app.simulation.bench import SimulatorPages  # not for planes that simulate nothing

            pages = SimulatorPages(self._simulation, SimulatorEvents(server.client()).write)
            server.http.root.serve_pages(SIMULATOR_PATH, pages.respond)
        simulators = self._settings.simulators
        names = simulators.names if simulators is not None else ()
        page, port = await self._serve_page(server)
        write_earlier(self._settings.data, Earlier(server.url.removeprefix("https://"), tuple(names), port))
        # After it: hints name the options that this start does not make the next one remember.
        told = self._simulation.told() if self._simulation is not None else unsimulated(self._settings)
        if self._binaries is not None:
            told = (*told, f"Hosted control planes run as processes of {self._settings.hosted_binaries}")
        if page:
            told = (*told, f"Dashboard: {on_data('dashboard', self._settings.data)}")
        instance = Instance(os.getpid(), server.url, __version__, time.time(), told, page)
        write_instance(self._settings.data, instance)
        show.ready(server.url)
        for line in told:
            show.say(line)
        follow = show.follow(lambda: self._describe(server, parts))
        working = [asyncio.create_task(parts.run()), asyncio.create_task(follow)]
        try:
            async with frugal():
                await stopping.wait()
            log.info("stopping")
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
            if self._web is not None:
                await self._web.stop()

    async def _serve_page(self, server: EmbeddedServer) -> tuple[str, int]:
        """Its address, and the port to serve it at next time."""
        earlier = read_earlier(self._settings.data).dashboard
        if self._web is None:
            return "", earlier
        base = Config(server.url, ca=server.pki.ca_pem)
        page = await serve_page(self._web, base, earlier, dial=self._dial)
        return page, urlsplit(page).port or 0

    def _parts(self, server: EmbeddedServer, environment: Environment, changed: Callable[[Part], None]) -> Supervisor:
        settings, components = self._settings, Components(server, self._streams)
        deployments = Deployments(server.client(), self._streams)
        runners, services = self._runners(environment), self._services(environment)
        environment = replace(environment, runners=runners)

        def loops() -> Manager:
            manager = Manager(server.client(), name="homeport")
            install_builtin(server, manager, runners, services)
            return components.note(manager)

        def controllers() -> Manager:
            manager = Manager(server.client(), name="homeport")
            deployments.show(self._platform.install(manager, environment))
            return components.note(manager)

        supervisor = Supervisor(changed=changed)
        supervisor.add("certificates", lambda: renew_certificates(server, settings))
        supervisor.add("cluster roles", server.aggregator.run)
        supervisor.add("housekeeping", lambda: keep_house(LogFile(settings.log)))
        supervisor.add_manager("loops", loops)
        if self._platform.components:
            # Apart from the loops: what goes wrong in a controller must not stop garbage collection.
            self._standby = Standby(server.client())
            supervisor.add("standby", self._standby.run)
            if settings.workers == 1:
                supervisor.add_manager("controllers", controllers, self._standby)
            else:
                controllers()  # none of them runs here: users look for their logs here
                self._add_workers(supervisor, server, environment, self._standby)
        if self._simulation is not None:
            supervisor.add("simulators", self._simulation.run)
            components.add(self._simulation.logs)
        supervisor.add("logs", components.run)
        if runners is not None:
            deployments.register(runners)
            supervisor.add("deployments", deployments.run)
        return supervisor

    def _add_workers(
        self, supervisor: Supervisor, server: EmbeddedServer, environment: Environment, gate: Standby
    ) -> None:
        for number in range(1, self._settings.workers + 1):
            order = partial(self._order, environment)
            worker = Worker(number, order, server.client(), self._streams, environment.ranges, gate)
            worker.part = supervisor.add(f"worker {number}", worker.run)
            self._workers.append(worker)

    def _order(self, environment: Environment, identity: str) -> Order:
        charts, choice = environment.charts, self._choice
        return Order(
            identity,
            str(self._settings.kubeconfig),
            str(self._settings.data),
            os.getpid(),
            choice.log_level,
            json=not sys.stderr.isatty(),
            proxy=environment.dial.proxy,
            ca_pem=environment.dial.ca_pem,
            chart_folder=str(charts.folder or ""),
            chart_mirror=charts.mirror,
            chart_proxy=charts.dial.proxy,
            chart_ca_pem=charts.dial.ca_pem,
            simulated=charts.simulated,
            chart_cache=str(charts.cache or ""),
            images=str(environment.images or ""),
            ccm_image=environment.ccm_image,
            plugins=choice.plugins,
            without=choice.without,
        )

    def _runners(self, environment: Environment) -> Runners | None:
        """None: Pods are not run. Components come first: what simulators bring is for whatever else there is."""
        if not self._settings.workloads:
            return None
        runners = Runners()
        self._platform.add_runners(runners, environment)
        if self._binaries is not None:
            self._binaries.register(runners)
        if self._simulation is not None:
            runners.extend(self._simulation.runners)
        return runners

    def _services(self, environment: Environment) -> ServiceOptions:
        pool = Pool(self._settings.service_pool) if self._settings.service_pool else None
        site = self._simulation.site if self._simulation is not None else None
        return ServiceOptions(self._settings.host, pool, site, environment.ranges)

    async def _copy(self, server: EmbeddedServer) -> dict[str, str]:
        """For `homeport backup`, which packs the copies: the database itself is open to this process alone."""
        number = uuid.uuid4().hex
        copied = {"database": str(await copy_database(server.store, self._settings, number))}
        if self._simulation is not None:
            # After the database: a restored plane then finds every VM that its objects name.
            site = self._settings.data / f"backup-{number}.sim"
            await self._simulation.copy(site)
            copied["simulated"] = str(site)
        if volumes := await copy_volumes(self._settings, number):  # also after it: a datastore has every tenant's data
            copied["volumes"] = str(volumes)
        return copied

    async def _answer(self, server: EmbeddedServer, parts: Supervisor) -> Any:
        return msgspec.to_builtins(self._describe(server, parts))

    def _describe(self, server: EmbeddedServer, parts: Supervisor) -> Description:
        store = server.store
        buckets = {bucket: store.count(bucket) for bucket in sorted(store.buckets())}
        described = describe(
            parts.parts,
            parts.managers,
            objects={bucket: count for bucket, count in buckets.items() if count},
            revision=store.revision,
            requests=server.http.metrics.total if server.http is not None else 0,
            simulators=self._simulation.describe() if self._simulation is not None else (),
            processes=self._binaries.running() if self._binaries is not None else {},
            standby=self._standby.why if self._standby is not None else "",
            elsewhere=[worker.report for worker in self._workers],
        )
        return msgspec.structs.replace(
            described,
            certificates=certificates(server.pki),
            backup=last_backup(self._settings.data),
            kubeconfig=str(self._settings.kubeconfig),
        )


def find_binaries(settings: Settings) -> BinaryRunner | None:
    """Also ends what a plane that was killed left running, whatever this one is going to run."""
    if settings.hosted_binaries is None:
        end_leftovers(settings.processes)
        return None
    try:
        return BinaryRunner(settings.hosted_binaries, settings.processes)
    except BinariesMissing as error:
        raise StartError(f"--hosted-binaries: {error}") from error


def unsimulated(settings: Settings) -> tuple[str, ...]:
    """What to say when a plane that was simulated before is started without simulators."""
    if not settings.simulated_before:
        return ()
    stop, start = on_data("down", settings.data), up_command(settings)
    return (
        f"warning: {settings.data} was used with --sim before, and this start simulates nothing: the controllers now "
        f"connect to the real addresses in its objects. To continue with the simulation: {stop} && {start}",
    )
