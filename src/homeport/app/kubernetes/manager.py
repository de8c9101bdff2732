"""The controllers on a Kubernetes cluster of others: several replicas may run, by Lease one works or all share."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog

from homeport.api.meta import Resource
from homeport.app.definition import undefined
from homeport.app.kubernetes.access import controller_rules, follows_contracts, hook_rules, needs_of_rules
from homeport.app.kubernetes.dashboard import place as dashboard
from homeport.app.kubernetes.dashboard.certificate import keep_certificates
from homeport.app.kubernetes.dashboard.object import CERTIFICATE_RULES
from homeport.app.kubernetes.health import HealthServer
from homeport.app.kubernetes.install import insist, publish
from homeport.app.kubernetes.layout import COMBINED, SPLIT_HOLDER, SYSTEM_NAMESPACE, split_leases
from homeport.app.kubernetes.permission import explain, needs_of, user_name
from homeport.app.kubernetes.version import note_version, refusal
from homeport.app.kubernetes.webhook import Webhooks, WebhookSettings
from homeport.app.kubernetes.webhook import needs_of as webhook_needs
from homeport.app.memory import frugal
from homeport.app.plane.show import Show, stop_event
from homeport.app.plane.supervisor import Supervisor
from homeport.app.platform import Platform
from homeport.app.report.describe import cached, describe
from homeport.app.report.description import Description
from homeport.capi.chartsettings import OWN_ADDRESSES, ChartSettings
from homeport.capi.definition.inventory import is_inventory
from homeport.capi.environment import Environment
from homeport.capi.shard import shard_of
from homeport.client import kubeconfig
from homeport.client.absence import find_object
from homeport.client.config import Config
from homeport.client.dial import DIRECT, DialOptions
from homeport.client.errors import ApiError, Forbidden, NotFound, Unauthorized, Unavailable
from homeport.client.http import HttpClient
from homeport.client.protocol import Key
from homeport.client.wire.retry import TRANSIENT
from homeport.runtime.clock import Clock
from homeport.runtime.lease import LeaseTiming
from homeport.runtime.manager import Common, Elected, Manager, Mode, Sharded, Solo
from homeport.runtime.permission import missing
from homeport.runtime.queue import Backoff

log = structlog.get_logger(__name__)

LEASE_NAME = "homeport"
# Credentials are renewed in files and by plugins, and read again; a process that they stay dead for needs a restart.
DEAD_SECONDS = 300.0
HOME_SECONDS = 2.0  # between two looks for the namespace of an installation
DEFINITIONS_SECONDS = 10.0  # between two looks for definitions that are missing
# A server that has just started does not know its roles yet: it is asked again, but not forever.
PASSING: tuple[type[ApiError], ...] = (*TRANSIENT, Forbidden)
DENIALS = 4
_NAMESPACE = Resource("", "v1", "Namespace", "namespaces", False)


class StartError(Exception):
    """The controllers can't run on this cluster; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Which cluster, and how replicas divide the work there."""

    kubeconfig: Path | None  # None: the service account of the Pod that we run in
    context: str = ""
    namespace: str = ""
    lease: str = LEASE_NAME  # '': this process is the only one, as somebody else takes care
    shards: bool = False
    health: tuple[str, int] | None = None
    timing: LeaseTiming | None = None
    dial: DialOptions = DIRECT  # how addresses of manifests are dialled
    ccm_image: str = ""  # '': the one of this release
    charts: ChartSettings = OWN_ADDRESSES
    webhook: WebhookSettings | None = None  # None: this process serves no webhooks
    identity: str = ""  # of the Lease; '': one of its own for each process


def connection(cluster: Cluster) -> Config:
    """Raises ConfigError."""
    if cluster.kubeconfig is None:
        return kubeconfig.in_cluster()
    return kubeconfig.load(cluster.kubeconfig, context=cluster.context)


async def run(cluster: Cluster, show: Show, platform: Platform | None = None) -> None:
    """Until SIGTERM or SIGINT; the Lease is given back then. Raises ConfigError, StartError and OSError."""
    config = connection(cluster)
    stopping = stop_event()
    platform = platform or Platform()
    if not platform.components:
        show.say("no controllers are registered, so this process only holds the Lease: see --plugin")
    async with HttpClient(config) as client, HttpClient(config) as leases, frugal():
        replica = Replica(client, cluster, config.namespace, show, platform, leases=leases)
        working = asyncio.create_task(replica.run())
        ended = asyncio.create_task(stopping.wait())
        await asyncio.wait({working, ended}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not working.done():
            log.info("stopping")
            working.cancel()
        try:
            await working
        except asyncio.CancelledError:
            return


class Replica:
    def __init__(
        self,
        client: HttpClient,
        cluster: Cluster,
        namespace: str,
        show: Show,
        platform: Platform,
        clock: Clock | None = None,
        leases: HttpClient | None = None,
    ) -> None:
        self._client = client
        self._leases = leases
        self._cluster = cluster
        self._namespace = cluster.namespace or namespace
        self._show = show
        self._platform = platform
        self._unready = "not connected yet"
        self._clock = clock
        self._chosen = platform
        self._absent: list[str] = []  # definitions
        self._has_home = False  # whether the namespace of an installation exists
        self._parts = Supervisor()
        self._webhooks: Webhooks | None = None

    async def run(self) -> None:
        serving = await self._serve_health()
        try:
            await self._patiently(self._connect)
            while True:
                await self._patiently(self._choose)
                await self._patiently(self._check)
                self._prepare()
                self._unready = ""
                self._show.ready(self._client.config.server)
                await self._work()
        finally:
            if serving is not None:
                await serving.close()

    async def _choose(self) -> None:
        """Kinds that the cluster does not serve can't be followed, and would keep everything else from starting."""
        self._absent = absent = await self._undefined()
        self._platform = self._chosen.served(absent) if absent else self._chosen
        if absent:
            self._show.say(
                f"clusters are not managed: {len(absent)} CustomResourceDefinitions are missing "
                f"({', '.join(absent[:2])}, ...); install config/crds with 'kubectl apply --server-side -f': "
                "the controllers then start automatically"
            )

    async def _undefined(self) -> list[str]:
        needed = [each for each in self._chosen.definitions() if not is_inventory(each)]
        return await undefined(self._client, needed) if needed else []

    async def _definitions_changed(self) -> None:
        """Returns when a definition that was missing is served. Replicas share the work, and one without a controller
        would leave its share undone."""
        while True:
            await asyncio.sleep(DEFINITIONS_SECONDS)
            with contextlib.suppress(ApiError):  # the next look may succeed
                if await self._undefined() != self._absent:
                    return

    def _prepare(self) -> None:
        self._parts = Supervisor(changed=self._show.changed, clock=self._clock)
        self._parts.add_manager("controllers", self._make)
        self._serve_webhooks()

    def _serve_webhooks(self) -> None:
        if self._cluster.webhook is None:
            return
        self._webhooks = Webhooks(self._platform, self._environment(), self._namespace, self._cluster.webhook)
        self._parts.add("webhooks", self._webhooks.run)

    async def _work(self) -> None:
        """Until other controllers can run."""
        following = asyncio.create_task(self._show.follow(self.describe))
        working = [asyncio.create_task(self._parts.run())]
        if self._absent:
            working.append(asyncio.create_task(self._definitions_changed()))
        if not self._has_home and self._guards_version:
            working.append(asyncio.create_task(self._home_found()))
        try:
            ended, _ = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            for task in (*working, following):
                task.cancel()
            await asyncio.gather(*working, following, return_exceptions=True)

    def describe(self) -> Description:
        managers = self._parts.managers
        return describe(self._parts.parts, managers, objects=cached(managers))

    def problems(self) -> dict[str, str]:
        """What keeps us from working, or from taking over at once: for /readyz."""
        if self._unready:
            return {"cluster": self._unready}
        found = {p.name: p.error for p in self._parts.parts if p.state == "waiting"}
        if self._webhooks is not None and self._webhooks.unready:
            found.setdefault("webhooks", self._webhooks.unready)
        for manager in self._parts.managers:
            found |= manager.health()
            if not manager.synced:
                found.setdefault("caches", "not synced yet")
        return found

    @property
    def unready(self) -> str:
        """Why a Service should not send requests here: those of webhooks, where there are some (see READINESS)."""
        if self._webhooks is not None:
            return self._webhooks.unready
        return "; ".join(self.problems().values())

    def notes(self) -> dict[str, str]:
        """Leases that the controllers wait for, and objects that are left alone because they can't be read: everything
        else is worked on."""
        managers = self._parts.managers
        return {what: why for each in managers for what, why in (each.waits() | each.unreadable()).items()}

    def dead(self) -> str:
        """Why only a restart can help: for /healthz. Watches that are open go on with a credential that has ended, so
        a replica that stands by notices it when it asks for the Lease, and nowhere else."""
        clients = (self._client, self._leases or self._client)
        seconds = max(client.rejected_seconds for client in clients)
        if seconds < DEAD_SECONDS:
            return ""
        return f"{self._client.config.server} has rejected the credentials for {seconds:.0f} s"

    def _mode(self) -> Mode:
        if not self._cluster.lease:
            return Solo()
        where = (self._namespace, self._cluster.lease, self._cluster.timing)
        return Sharded(*where, shard_of) if self._cluster.shards else Elected(*where)

    def _make(self) -> Manager:
        who = self._cluster.identity
        manager = Manager(
            self._client,
            mode=self._mode(),
            name="homeport",
            clock=self._clock,
            who=who,
            leases=self._leases,
            common=self._common,
            before=self._before,
        )
        if self._platform.placement.home:
            # On a cluster that kubectl or Helm installed the controllers on, they are the first who can do it.
            work = partial(publish, self._client, self._platform)
            manager.job(partial(insist, work, "publishing the objects that exist from the start"))
            manager.job(partial(keep_certificates, self._client))
        if self._guards_version:
            work = partial(note_version, manager.client, self._lease)
            manager.job(partial(insist, work, "noting the version on the Lease"))
        return self._platform.manage(manager, self._environment())

    @property
    def _common(self) -> Common | None:
        """Whoever works on the clusters of this Kubernetes holds one Lease: the replicas of the combined layout, the
        Deployments of the split one together, or replicas whose own Lease is in another namespace. An installation
        may change from one to the other while processes of both run, and users start some beside it."""
        home = Key(*COMBINED.lease)
        if not self._cluster.lease:
            return None
        if self._platform.placement.split:
            return Common(home, SPLIT_HOLDER, split_leases(self._platform.components))
        elsewhere = self._lease != home and self._has_home and self._guards_version
        return Common(home, str(self._lease), (self._lease,)) if elsewhere else None

    @property
    def _before(self) -> tuple[Key, ...]:
        """Deployments of the split layout of older versions hold their own Leases and not the common one. Kubectl does
        not remove them, and Helm removes them after the new ones have started."""
        installed = self._lease == Key(*COMBINED.lease) or self._has_home
        alone = installed and not self._platform.placement.split
        return split_leases(self._platform.components) if alone and self._guards_version else ()

    async def _find_home(self) -> None:
        """Where the namespace does not exist, nothing is installed."""
        with contextlib.suppress(Forbidden):
            self._has_home = await find_object(self._client, _NAMESPACE, Key("", SYSTEM_NAMESPACE)) is not None

    async def _home_found(self) -> None:
        """Returns when somebody begins to install the controllers: its namespace is the first thing that is created.
        Then they must know of us before their Pods start."""
        while not self._has_home:
            await asyncio.sleep(HOME_SECONDS)
            with contextlib.suppress(ApiError):  # the next look may succeed
                await self._find_home()

    @property
    def _lease(self) -> Key:
        return Key(self._namespace, self._cluster.lease)

    @property
    def _guards_version(self) -> bool:
        """Not where no definitions of ours are: in workload clusters, for example."""
        return bool(self._cluster.lease and self._platform.definitions())

    def _environment(self) -> Environment:
        cluster = self._cluster
        return Environment(
            self._client,
            cluster.dial,
            # Simulated clusters run no Pods but ours.
            in_cluster=cluster.kubeconfig is None and not cluster.charts.simulated,
            charts=cluster.charts,
            ccm_image=cluster.ccm_image,
        )

    async def _serve_health(self) -> HealthServer | None:
        if self._cluster.health is None:
            return None
        host, port = self._cluster.health
        server = HealthServer(self.problems, self.notes, self.dead)
        chosen = await server.start(host, port)
        self._show.say(f"health: http://{f'[{host}]' if ':' in host else host}:{chosen}/readyz")
        return server

    async def _patiently(self, ask: Callable[[], Awaitable[None]]) -> None:
        """Keeps trying: clusters are restarted, and we may be up before them. Raises StartError."""
        backoff, failures, denials = Backoff(first=1.0, limit=30.0), 0, 0
        while True:
            try:
                await ask()
                return
            except PASSING as error:
                denials += isinstance(error, Forbidden)
                if denials > DENIALS:
                    raise StartError(f"{self._client.config.server}: {error}") from error
                failures += 1
                delay = backoff.delay(failures)
                self._unready = str(error)
                self._show.say(f"waiting for the cluster: {error}; retrying in {delay:.0f} s")
                await asyncio.sleep(delay)

    async def _connect(self) -> None:
        try:
            (await self._client.raw("GET", "/version")).check("/version")
        except Forbidden:
            return  # it knows us; what we may do is asked next
        except Unauthorized as error:
            server, file = self._client.config.server, self._cluster.kubeconfig or "the Pod's service account"
            raise StartError(f"{server} rejects the credentials of {file}: {error}") from error

    async def _check_ready(self) -> None:
        """Raises ApiError if the server is still starting: it denies everything until it has read its roles."""
        answer = await self._client.raw("GET", "/readyz")
        if answer.status >= 500:
            raise Unavailable(f"{self._client.config.server} is not ready yet (/readyz answers {answer.status})")

    async def _has_dashboard(self) -> bool:
        with contextlib.suppress(Forbidden):  # then nothing is known about it, and nothing can be issued for it
            return await find_object(self._client, dashboard.CONFIG_MAP, dashboard.KEY) is not None
        return False

    async def _check(self) -> None:
        await self._find_home()
        manager = self._make()
        # Single objects of our own kinds are read besides; of others only what a component's rules say.
        own = {(each["spec"]["group"], each["spec"]["names"]["plural"]) for each in self._platform.definitions()}
        followed = (informer.resource for informer in manager.informers)
        followed = (each for each in followed if (each.group, each.plural) in own)
        rules = controller_rules(self._platform, followed, contracts=follows_contracts(manager))
        needs = [*needs_of(manager), *needs_of_rules(rules)]
        if self._cluster.webhook is not None:
            needs += needs_of_rules(hook_rules(self._platform))
            needs += webhook_needs(self._platform.definitions(), self._namespace, self._cluster.webhook.service)
        if self._platform.placement.home and await self._has_dashboard():
            needs += needs_of_rules(CERTIFICATE_RULES, dashboard.NAMESPACE)
        denied = await missing(self._client, needs)
        if denied:
            await self._check_ready()
            raise StartError(explain(await user_name(self._client), denied))
        held = [self._lease, *([manager.common.key] if manager.common else [])] if self._guards_version else []
        for lease in held:
            if why := await refusal(self._client, lease):
                raise StartError(why)
        try:
            await self._client.get(_NAMESPACE, Key("", self._namespace))
        except NotFound as error:
            raise StartError(
                f"namespace {self._namespace!r} for the Lease does not exist: create it with 'kubectl create "
                f"namespace {self._namespace}', or choose another with --namespace"
            ) from error
        except ApiError as error:
            log.debug("can't read the namespace of the Lease", namespace=self._namespace, error=str(error))
