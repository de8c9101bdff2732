"""The life of one remote machine: claimed, provisioned by a job that runs on it, cleaned up by another.

A machine that exists already may be anybody's. So it is claimed before anything is done: a file on it names its owner,
and commands run only where that is us.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import structlog

from homeport.api.meta import Resource
from homeport.api.remote.v1beta2 import PooledRemoteMachine, RemoteCluster, RemoteMachine
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, MergePatch, Write
from homeport.infra.error import Denied, Misconfigured, Missing, Taken
from homeport.infra.machine.driver import require_user_data
from homeport.infra.protocol import Instance, MachineScope
from homeport.infra.protocol import MachineDriver as MachineDriverProtocol
from homeport.providers.remote import script
from homeport.providers.remote.cloudconfig import parse_bootstrap
from homeport.providers.remote.connection import RemoteSession
from homeport.providers.remote.failure import Failures
from homeport.providers.remote.pool import POOLED, Pools
from homeport.providers.remote.script import Job, Look, Plan, Progress
from homeport.providers.remote.ssh import Connection, Credentials, connected, host_key_of
from homeport.providers.remote.target import HOST_KEY, OWNER, Target, target_of
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

Scope = MachineScope[RemoteCluster, RemoteMachine, RemoteSession]

SECRET = Resource("", "v1", "Secret", "secrets")
PROVISIONING, CLEANING = "Provisioning", "CleaningUp"
_WRITE = Write(field_manager="homeport-remote")
_FIRST_SECONDS, _SLOWEST_SECONDS = 0.5, 10.0
_RETRY_SECONDS, _SLOWEST_RETRY_SECONDS = 15.0, 300.0
_LONG_SECONDS = 1800


class MachineDriver(MachineDriverProtocol[RemoteCluster, RemoteMachine, RemoteSession]):
    """`machines`: all RemoteMachines of the plane."""

    def __init__(self, client: Client, machines: Callable[[], Iterable[RemoteMachine]], clock: Clock) -> None:
        self._client = client
        self._machines = machines
        self._pools = Pools(client)
        self._failures = Failures(clock)
        self._looks: dict[str, int] = {}  # how often a job was found running, by UID

    # -- observe -----------------------------------------------------------------------------------------------

    async def observe(self, scope: Scope) -> Instance | None:
        """None: nothing was begun on the machine, or it is not ours."""
        target = await self._target(scope)
        if target is None or not (_is_begun(scope.infra) or scope.has_run):
            return None
        async with self._open(scope, target) as connection:
            look = await _look(connection, target)
        if not look.owner and scope.has_run and not _is_begun(scope.infra):
            # Provisioned by other controllers, which leave no mark. It serves, and cleanup will leave it alone.
            look = replace(look, provision=Progress(done=True))
        elif look.owner != self._owner_id(scope.infra) or not (look.provision.given or look.provision.done):
            return None
        return Instance(
            id=target.id,
            provider_id=scope.infra.spec.provider_id or target.provider_id,
            name=target.machine.name,
            power="on",
            addresses=target.addresses,
            uid=look.owner,
            complete=look.provision.done,
            vendor=look,
        )

    # -- converge ----------------------------------------------------------------------------------------------

    async def converge(self, scope: Scope, instance: Instance | None) -> Wait | None:
        if instance is None:
            return await self._begin(scope)
        look: Look = instance.vendor
        wait = await self._follow(scope, "provision", look.provision, PROVISIONING)
        if wait is None:
            self._forget(scope.uid)
        return wait

    async def _begin(self, scope: Scope) -> Wait:
        require_user_data(scope)
        parse_bootstrap(scope.user_data, scope.format, scope.name, "unknown")  # before a machine is reserved for it
        if scope.infra.spec.pool and not scope.infra.metadata.annotations.get(POOLED):
            pooled = await self._pools.reserve(scope.infra)
            await scope.record({POOLED: pooled.metadata.name})
        target = await self._target(scope)
        if target is None:
            raise Missing(f"RemoteMachine {scope.infra.metadata.name}: its machine is not reserved yet")
        bootstrap = parse_bootstrap(scope.user_data, scope.format, scope.name, target.id)
        plan = script.plan_provision(bootstrap, as_script=target.as_script, working_dir=target.working_dir)
        owner = self._owner_id(scope.infra)
        async with self._open(scope, target) as connection:
            look = await _look(connection, target)
            if look.owner not in ("", owner):
                raise _foreign(target, look.owner)
            # Before the claim: without it a machine that we claimed would be nobody's after a crash.
            await scope.record({OWNER: owner})
            text = script.render_begin("provision", plan, owner, claim=True)
            code, _ = await connection.run(text, expect=(0, script.NOT_OURS))
        if code == script.NOT_OURS:
            raise _foreign(target, "another RemoteMachine")
        log.info("machine is being provisioned", machine=str(target), steps=plan.size)
        return Wait(PROVISIONING, f"{target}: the bootstrap commands were started", after=_FIRST_SECONDS)

    # -- jobs --------------------------------------------------------------------------------------------------

    async def _follow(self, scope: Scope, job: Job, progress: Progress, reason: str) -> Wait | None:
        """None: the job has succeeded."""
        if progress.done:
            return None
        target = await self._target(scope)
        if target is None:
            raise Missing(f"RemoteMachine {scope.infra.metadata.name}: its machine is no longer reserved")
        if progress.running_seconds is not None:
            return self._running(scope, target, job, progress, reason)
        if progress.failed is not None:
            rest = self._failures.rest(scope.infra, job, progress.failed[2], _failed(target, job, progress.failed))
            if rest is not None:
                return rest
        async with self._open(scope, target) as connection:
            await connection.run(script.render_restart(job, self._owner_id(scope.infra)))
        text = f"{target}: {job} was interrupted and continues at step {max(progress.at, 1)}"
        return Wait(reason, text, after=self._next_look(scope.uid))

    def _next_look(self, uid: str) -> float:
        count = self._looks[uid] = self._looks.get(uid, -1) + 1
        return float(min(_FIRST_SECONDS * 1.5 ** min(count, 10), _SLOWEST_SECONDS))

    def _running(self, scope: Scope, target: Target, job: Job, progress: Progress, reason: str) -> Wait:
        after = self._next_look(scope.uid)
        seconds = progress.running_seconds or 0
        text = f"{target}: {job} is at step {max(progress.at, 1)}"
        if seconds < _LONG_SECONDS:
            return Wait(reason, text, after=after)
        text += f" for {seconds // 60} minutes: {_read_log(target, job)}"
        return Wait(reason, text, after=after, warning=True)

    # -- release -----------------------------------------------------------------------------------------------

    async def release(self, scope: Scope, instance: Instance | None) -> Wait | None:
        """A machine that is not proven to be ours is left as it is."""
        del instance  # it does not tell a machine that is not ours from one where nothing was begun
        target = await self._target(scope)
        if target is not None and (_is_begun(scope.infra) or scope.has_run):
            wait = await self._clean(scope, target)
            if wait is not None:
                return wait
        await self._pools.give_back(scope.infra)
        self._forget(scope.uid)
        return None

    async def _clean(self, scope: Scope, target: Target) -> Wait | None:
        owner = self._owner_id(scope.infra)
        async with self._open(scope, target) as connection:
            look = await _look(connection, target)
            if look.owner != owner:
                log.info("machine is left as it is: it does not carry our mark", machine=str(target))
                return None
            if not look.cleanup.given and not look.cleanup.done:
                await connection.run(script.render_stop(owner))
                plan = script.plan_cleanup(target.cleanup, look.k0s, target.working_dir)
                await connection.run(script.render_begin("cleanup", plan, owner))
                return Wait(CLEANING, f"{target}: the cleanup commands were started", after=_FIRST_SECONDS)
            if look.cleanup.done:
                await connection.run(script.render_forget(owner), expect=(0, script.NOT_OURS))
                return None
        if look.cleanup.failed is not None:
            # The commands may have been corrected in the meantime.
            failed = look.cleanup.failed
            rest = self._failures.rest(scope.infra, "cleanup", failed[2], _failed(target, "cleanup", failed))
            return rest or await self._clean_again(scope, target, look)
        return await self._follow(scope, "cleanup", look.cleanup, CLEANING)

    async def _clean_again(self, scope: Scope, target: Target, look: Look) -> Wait:
        plan: Plan = script.plan_cleanup(target.cleanup, look.k0s, target.working_dir)
        async with self._open(scope, target) as connection:
            await connection.run(script.render_begin("cleanup", plan, self._owner_id(scope.infra)))
        return Wait(CLEANING, f"{target}: the cleanup commands were started again", after=_FIRST_SECONDS)

    # -- pause -------------------------------------------------------------------------------------------------

    async def quiesce(self, scope: Scope) -> Wait | None:
        """A job goes on whoever watches it, and what it needs of the object moves with the object."""
        del scope
        return None

    def stop_watching(self, uid: str) -> None:
        del uid

    def _forget(self, uid: str) -> None:
        self._failures.forget(uid)
        self._looks.pop(uid, None)

    # -- the machine -------------------------------------------------------------------------------------------

    async def _target(self, scope: Scope) -> Target | None:
        """None: it comes from a pool, and none is reserved."""
        infra = scope.infra
        if not infra.spec.pool:
            return target_of(infra, None)
        pooled = await self._pools.reserved(infra)
        return None if pooled is None else target_of(infra, pooled)

    def _owner_id(self, infra: RemoteMachine) -> str:
        """What the mark on the machine says. After a move the object has another UID, and still its annotation. A copy
        of the object has it, too: the original counts."""
        uid = infra.metadata.uid
        recorded = infra.metadata.annotations.get(OWNER, "")
        if not recorded or recorded == uid:
            return uid
        for each in self._machines():
            if each.metadata.uid == uid:
                continue
            if recorded in (each.metadata.uid, each.metadata.annotations.get(OWNER)):
                return uid
        return recorded

    @asynccontextmanager
    async def _open(self, scope: Scope, target: Target) -> AsyncIterator[Connection]:
        credentials = await self._credentials(scope, target)
        async with connected(target, credentials) as connection:
            yield connection

    async def _credentials(self, scope: Scope, target: Target) -> Credentials:
        try:
            secret = await self._client.get(SECRET, target.secret)
        except NotFound:
            text = "create it with an SSH private key at `value`; reconciliation resumes automatically"
            raise Missing(f"{target}: Secret {target.secret} does not exist: {text}") from None
        data = secret.get("data") or {}
        key = _decoded(data, "value")
        if not key:
            raise Misconfigured(f"{target}: Secret {target.secret} has no key `value` with an SSH private key")
        known_hosts = _decoded(data, "known_hosts")
        host_key = target.host_key
        if not known_hosts and not host_key:
            host_key = await self._first_use(scope, target)
        return Credentials(key=key, secret=str(target.secret), known_hosts=known_hosts, host_key=host_key)

    async def _first_use(self, scope: Scope, target: Target) -> str:
        """Recorded before anything is sent to the machine, and never changed afterwards."""
        if _is_begun(scope.infra):
            raise Denied(
                f"{target}: its SSH host key is no longer recorded, and the machine was used before: write the key "
                f"into {target.host_key_place}, in the form 'ssh-ed25519 AAAA...'"
            )
        found = await host_key_of(target)
        if target.pooled is not None:
            patch = MergePatch({"metadata": {"annotations": {HOST_KEY: found}}})
            await self._client.patch(PooledRemoteMachine, target.pooled, patch, _WRITE)
        else:
            await scope.record({HOST_KEY: found})
        log.info("SSH host key is recorded", machine=str(target))
        return found


async def _look(connection: Connection, target: Target) -> Look:
    _, text = await connection.run(script.render_look())
    look = script.parse_look(text)
    if not look.root:
        raise Misconfigured(
            f"{target}: user {target.user} is not root: set useSudo to true, or user to root; k0s needs root"
        )
    return look


def _is_begun(infra: RemoteMachine) -> bool:
    """Nothing is done on a machine before this is recorded."""
    return bool(infra.metadata.annotations.get(OWNER))


def _foreign(target: Target, owner: str) -> Taken:
    return Taken(
        f"{target}: the machine carries the mark of another owner ({owner}) in {script.FOLDER}/owner, and nothing was "
        "changed on it. If that owner no longer exists, clean the machine up (k0s reset) and delete that folder"
    )


def _failed(target: Target, job: Job, failed: tuple[int, int, int]) -> Wait:
    step, code, attempt = failed
    reason = "BootstrapFailed" if job == "provision" else "CleanupFailed"
    after = min(_RETRY_SECONDS * 2.0 ** min(attempt - 1, 10), _SLOWEST_RETRY_SECONDS)
    what = f"step {step} of {job}" if step else f"the folder {target.working_dir} (workingDir) for {job}"
    text = f"{target}: {what} failed with exit code {code} (attempt {attempt}): {_read_log(target, job)}"
    if job == "cleanup":
        text += "; or set cleanUpCommands to what cleans the machine up"
    return Wait(reason, f"{text}; the step is repeated in {after:.0f} s", after=after, warning=True)


def _read_log(target: Target, job: Job) -> str:
    """Output is not shown here: commands may print secrets."""
    sudo = "sudo " if target.use_sudo else ""
    path = f"{script.FOLDER}/{job}.log"
    return f"read the output with 'ssh -p {target.port} {target.user}@{target.address} {sudo}cat {path}'"


def _decoded(data: Mapping[str, str], key: str) -> str:
    try:
        return base64.b64decode(data.get(key) or "").decode()
    except ValueError:
        return ""
