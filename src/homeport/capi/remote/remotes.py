"""Workload clusters: one connection each, made when it can be, probed, and made again when it broke or was refused.

    Cluster, Secret <cluster>-kubeconfig --watch--> queue --bounded workers--> dial or probe --> followers are notified

A Remote outlives its connections: what is watched through it is watched again after each reconnect, from the same
caches, so that handlers hear of everything that changed meanwhile, deletions included.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Unstructured
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.capi.object.ownership import owner_of_kind
from homeport.capi.remote import kubeconfig
from homeport.capi.remote.link import LEAST_SECONDS, QUIET_SECONDS, Link, Silence, worded
from homeport.capi.remote.pki import SECRET
from homeport.capi.remote.retired import RetiredClients
from homeport.capi.remote.workload import NODE, Connect, Remote, connect_over_http, probe
from homeport.capi.shard import cluster_shard
from homeport.client.config import ConfigError
from homeport.client.errors import ApiError, NotFound, Unauthorized
from homeport.client.protocol import Client, Key, Query
from homeport.runtime.cache import key_of
from homeport.runtime.informer import metadata_only
from homeport.runtime.manager import Manager
from homeport.runtime.queue import Backoff, Priority, ShutDown, WorkQueue
from homeport.runtime.task import Tasks

log = structlog.get_logger(__name__)

__all__ = ["NODE", "Connect", "Remote", "Remotes"]

WORKERS = 64  # so many clusters are dialled or probed at once; an unreachable one holds its worker for seconds
PROBE_SECONDS = 10.0  # between probes of a cluster that does not answer
PROBE_TIMEOUT = 5.0
PROBE_FAILURES = 5  # in a row, and the connection is given up
SYNC_TIMEOUT = 60.0
_LABELLED = Query(labels=CLUSTER_NAME_LABEL)

# A cluster that comes up is noticed soon; one that has been away for long is not asked for all the time.
_SOON = Backoff(first=1.0, limit=10.0)
_RARELY = Backoff(first=60.0, limit=60.0)
_PATIENCE = 60  # attempts

Changed = Callable[[Key], None]
NodeHandler = Callable[[Key, Unstructured | None, Unstructured | None], None]


class Remotes:
    def __init__(self, manager: Manager, *, connect: Connect | None = None, proxy: str = "") -> None:
        self._manager = manager
        self._clock = manager.clock
        self._connect: Connect = connect or connect_over_http
        self._proxy = proxy
        self._links: dict[Key, Link] = {}
        self._followers: list[Changed] = []
        self._node_handlers: list[NodeHandler] = []
        self._queue: WorkQueue[Key] = WorkQueue()
        self._tasks = Tasks()
        self._retired = RetiredClients(self._tasks.start)
        self._clusters = manager.informers.get(Cluster)
        self._clusters.on_change(self._cluster_changed)
        # Metadata is enough to learn of a new kubeconfig; what it says is read when it is needed, and not kept.
        self._secrets = manager.informers.get(metadata_only(SECRET), _LABELLED)
        self._secrets.on_change(self._secret_changed)
        manager.job(self.run)
        manager.divide(self)
        manager.weigh(lambda: (cluster_shard(key) for key in self._clusters.cache.known_keys()))

    # -- what controllers ask ----------------------------------------------------------------------------------

    def get(self, cluster: Key) -> Remote | None:
        """The cluster, when it is connected; its caches are filled."""
        link = self._links.get(cluster)
        return link.remote if link is not None and link.connected else None

    def why(self, cluster: Key) -> str:
        """Why there is no connection, in one sentence; '' when there is one."""
        link = self._links.get(cluster)
        if link is not None:
            return "" if link.connected else link.why
        if cluster not in self._clusters.cache:
            return f"Cluster {cluster} does not exist"
        if not self.mine(cluster):
            return "another replica is connected to the workload cluster"
        return "connecting to the workload cluster"

    def last_probe(self, cluster: Key) -> float | None:
        """When the cluster last answered, in seconds since the epoch; None: never since we run."""
        link = self._links.get(cluster)
        if link is None or link.last_probe is None:
            return None
        # What came through a watch since the last look counts, too.
        return max(link.last_probe, self._clock.now() - link.remote.silent_seconds)

    def silent_since(self, cluster: Key) -> float | None:
        """As `last_probe`, but before the first success: since when it is asked for. None: it was not asked yet.

        Whoever has just begun to ask knows no better than those before: what they found out still counts for a while.
        """
        link = self._links.get(cluster)
        return None if link is None else self.last_probe(cluster) or link.began

    def failures(self, cluster: Key) -> int:
        """How many attempts or probes failed since the last success."""
        link = self._links.get(cluster)
        return 0 if link is None else link.failures

    @property
    def connected(self) -> int:
        return sum(link.connected for link in self._links.values())

    def follow(self, changed: Changed) -> None:
        """`changed` is called with the cluster at each connect and disconnect, when it answers again after a silence,
        when it has been silent for 50 and for 300 seconds, and when five first attempts in a row failed."""
        self._followers.append(changed)

    def on_node(self, handler: NodeHandler) -> None:
        """`handler(cluster, old, new)` is called for each change of any cluster's Nodes; at first for all there are."""
        self._node_handlers.append(handler)
        for key, link in self._links.items():
            for node in link.remote.nodes:
                self._hand_on(handler, key, None, node)

    def mine(self, cluster: Key) -> bool:
        """Whether this process connects to the cluster: another replica may do so instead."""
        return self._manager.holds(cluster_shard(cluster))

    # -- what wakes us -----------------------------------------------------------------------------------------

    def _cluster_changed(self, old: Any, new: Any, initial: bool) -> None:
        cluster = new if new is not None else old
        if new is not None and not self.mine(key_of(cluster)):
            return
        if old is None or new is None or _provisioned(old) != _provisioned(new):
            self._queue.add(Key(cluster.metadata.namespace, cluster.metadata.name))

    def _secret_changed(self, old: Any, new: Any, initial: bool) -> None:
        if new is None:
            return  # whoever is connected stays so; the cluster will say when the credential is no longer good
        cluster = kubeconfig.cluster_of(Key(new.metadata.namespace, new.metadata.name))
        if cluster is not None and self.mine(cluster):
            self._queue.add(cluster)

    def take_over(self) -> None:
        for key in self._clusters.cache.known_keys():
            if key not in self._links and self.mine(key):
                self._queue.add(key)

    async def let_go(self) -> None:
        """A worker ends each connection, after whatever it does with it at this moment."""
        for key in self._links:
            if not self.mine(key):
                self._queue.add(key)

    async def run(self) -> None:
        """Works until cancelled: a job of the manager, so that a replica that stands by does not connect."""
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(WORKERS):
                    group.create_task(self._work(), name=f"remotes worker {number}")
        finally:
            self._queue.close()
            await self.close()

    async def close(self) -> None:
        """Ends all connections."""
        for key in list(self._links):
            await self._forget(key)
        await self._tasks.close()
        await self._retired.close()

    async def attach(self, cluster: Key, client: Client) -> Remote:
        """Connects to a cluster by a client that is there already: for tools, and for tests of single reconciles."""
        link = self._link(cluster)
        await self._adopt(link, client)
        return link.remote

    async def _work(self) -> None:
        with contextlib.suppress(ShutDown):
            while True:
                key = await self._queue.get()
                try:
                    with structlog.contextvars.bound_contextvars(cluster=str(key)):
                        await self._step(key)
                except Exception:  # one cluster must not end the connections to all others
                    log.exception("checking a cluster failed", cluster=str(key))
                    self._queue.retry(key, at_least=PROBE_SECONDS)
                finally:
                    self._queue.done(key)
                    del key  # a worker that waits holds nothing of a cluster that may be gone

    # -- one look at one cluster -------------------------------------------------------------------------------

    async def _step(self, key: Key) -> None:
        cluster = self._clusters.cache.get(key)
        if cluster is None or not self.mine(key):
            await self._forget(key)
            return
        link = self._link(key)
        if not _provisioned(cluster) and not link.connected:
            link.why = "the infrastructure of the cluster is not provisioned yet"
            return  # its change brings us back
        if link.began is None:
            link.began = self._clock.now()
            link.silence.count()
        try:
            if not link.connected:
                await self._dial(link)
            elif self._renewed(link):
                await self._redial(link)
            else:
                await self._look(link)
        except Unauthorized as error:
            await self._refused(link, error)
        except (ApiError, ConfigError, TimeoutError) as error:
            await self._failed(link, error)
        except Exception as error:
            log.exception("connecting failed")  # a kubeconfig or an answer like nobody has seen before
            await self._failed(link, error)

    def _renewed(self, link: Link) -> bool:
        known = self._secrets.cache.get(kubeconfig.secret_key(link.remote.key))
        return known is not None and known.metadata.resource_version != link.secret_version

    async def _look(self, link: Link) -> None:
        """It is asked only if nothing came from it for a while."""
        silent = link.remote.silent_seconds
        if silent >= QUIET_SECONDS - LEAST_SECONDS:
            async with asyncio.timeout(PROBE_TIMEOUT):
                await probe(link.remote.client)
            silent = 0.0
        self._answered(link, silent)

    async def _redial(self, link: Link) -> None:
        """There is another kubeconfig. While it does not work, the connection that does is kept."""
        try:
            await self._dial(link)
        except (ApiError, ConfigError, TimeoutError) as error:
            if not link.connected:
                raise
            log.warning("the new kubeconfig does not work: still using the previous one", error=worded(error))
            known = self._secrets.cache.get(kubeconfig.secret_key(link.remote.key))
            link.secret_version = "" if known is None else known.metadata.resource_version
            await self._look(link)

    async def _dial(self, link: Link) -> None:
        """A new connection with the newest kubeconfig; one in use is replaced when the new one works."""
        where = kubeconfig.secret_key(link.remote.key)
        try:
            secret = await self._manager.client.get(SECRET, where)
        except NotFound:
            raise ConfigError(f"Secret {where.name} with the kubeconfig does not exist yet") from None
        content = kubeconfig.value(secret)
        digest = hashlib.sha256(content).digest()
        if link.connected and digest == link.digest:  # only its labels or owners changed
            link.secret_version = secret.resource_version
            await self._look(link)
            return

        def connect() -> Client:
            # One of our own names the proxy of its time: in a copy of the plane that is somebody else's network.
            renamed = self._proxy and _ours(secret)
            return self._connect(kubeconfig.through(content, self._proxy) if renamed else content, self._proxy)

        async with link.attempt(digest, connect) as client:
            async with asyncio.timeout(PROBE_TIMEOUT):
                await probe(client)
            await self._adopt(link, client)
        link.secret_version, link.digest = secret.resource_version, digest

    async def _adopt(self, link: Link, client: Client) -> None:
        """Everything goes through `client` from now on."""
        before = link.remote.client if link.connected else None
        link.remote.use(client)
        if before is not None:  # first of all: whatever comes, it is closed in the end
            self._retired.add(before, f"{link.remote.key}: the client before")
        try:
            async with asyncio.timeout(SYNC_TIMEOUT):
                await link.remote.synced.wait()
        except TimeoutError:
            await self._disconnect(link, f"its Nodes can't be watched: {link.remote.error or 'no answer in time'}")
            raise ConfigError(link.why) from None
        fresh = not link.connected
        self._answered(link)  # first, so that followers are notified once
        link.connected = True
        if fresh:
            log.info("connected")
            self._notify(link.remote.key)

    # -- how it went -------------------------------------------------------------------------------------------

    def _answered(self, link: Link, ago: float = 0.0) -> None:
        again = link.connected and link.failures > 0
        link.failures = 0
        link.why = ""
        link.last_probe = self._clock.now() - ago
        link.remote.nudge()
        link.silence.count(ago)
        if again:
            self._notify(link.remote.key)

    async def _refused(self, link: Link, error: Unauthorized) -> None:
        """The credential is not good any more: with the newest one at once, the first time."""
        was = link.connected
        await self._failed(link, error, give_up=True)
        if was:
            self._queue.add(link.remote.key)

    async def _failed(self, link: Link, error: Exception, *, give_up: bool = False) -> None:
        link.failures += 1
        why = worded(error)
        if link.connected:
            if not give_up and link.failures < PROBE_FAILURES:
                log.info("no answer", error=why, failures=link.failures)
                self._again(link, PROBE_SECONDS)
                return
            await self._disconnect(link, why)
        elif why != link.why:
            log.info("not connected", error=why, failures=link.failures)
        link.why = why
        if link.last_probe is None and link.failures == PROBE_FAILURES:
            self._notify(link.remote.key)
        backoff = _SOON if link.failures < _PATIENCE else _RARELY
        self._again(link, backoff.delay(link.failures))

    def _ask(self, key: Key) -> None:
        """A watch broke, or is silent: whether the cluster is gone with it is asked at once, and then at the usual
        times."""
        link = self._links.get(key)
        if link is not None and link.connected and not link.failures:
            self._queue.add(key)

    def _greet(self, key: Key) -> None:
        """It could not be connected to, and a request of anybody was answered: nobody need wait for the next probe."""
        link = self._links.get(key)
        if link is None or not link.connected:
            return
        if link.failures:
            self._answered(link)
        else:
            link.remote.nudge()

    def _again(self, link: Link, seconds: float) -> None:
        # Clusters that answer, or are asked for the first time, go before those that did not answer the last time.
        urgent = Priority.RESYNC if link.failures else Priority.NORMAL
        self._queue.add(link.remote.key, after=seconds, priority=urgent)

    async def _disconnect(self, link: Link, why: str) -> None:
        was, link.connected = link.connected, False
        link.why = why
        link.secret_version, link.digest = "", b""
        await link.remote.stop()
        if was:
            log.warning("disconnected", because=why)
            self._notify(link.remote.key)

    def _notify(self, key: Key) -> None:
        for follower in self._followers:
            try:
                follower(key)
            except Exception:
                log.exception("a follower failed", cluster=str(key))

    # -- links -------------------------------------------------------------------------------------------------

    def _link(self, key: Key) -> Link:
        if key not in self._links:
            ask, greet = partial(self._ask, key), partial(self._greet, key)
            remote = Remote(key, self._tasks.start, ask, greet)
            remote.on_node(partial(self._node_changed, key))
            silence = Silence(
                self._clock, ask=ask, notify=partial(self._notify, key), heard=lambda: remote.silent_seconds
            )
            self._links[key] = Link(remote, silence)
        return self._links[key]

    def _node_changed(self, key: Key, old: Unstructured | None, new: Unstructured | None) -> None:
        for handler in self._node_handlers:
            self._hand_on(handler, key, old, new)

    def _hand_on(self, handler: NodeHandler, key: Key, old: Unstructured | None, new: Unstructured | None) -> None:
        try:
            handler(key, old, new)
        except Exception:  # the others hear of it all the same
            log.exception("a handler of Nodes failed", cluster=str(key))

    async def _forget(self, key: Key) -> None:
        link = self._links.pop(key, None)
        if link is None:
            return
        link.silence.end()
        await link.end_attempts()
        was, link.connected = link.connected, False
        await link.remote.stop()
        if was:
            self._notify(link.remote.key)


def _ours(secret: Unstructured) -> bool:
    """Whether our control planes keep this kubeconfig, and not a user or another controller."""
    return owner_of_kind(secret, KubeadmControlPlane.__resource__) is not None


def _provisioned(cluster: Cluster) -> bool:
    return cluster.status.initialization.infrastructure_provisioned is True
