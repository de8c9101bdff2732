"""Whether the bootstrap of a machine succeeded: its Node joined, or the machine itself reports so over SSH.

SSH connections are made beside the reconcile loop: a VM that does not answer would hold up all others.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from homeport.api.kubevirt.v1alpha1 import KubevirtCluster
from homeport.api.meta import Unstructured
from homeport.client.dial import DialOptions
from homeport.client.errors import ApiError
from homeport.infra.error import ProviderError
from homeport.infra.machine.console import UNCERTAIN, Sign, read_sign
from homeport.infra.machine.ssh import run_command
from homeport.infra.protocol import Instance
from homeport.machinery import condition
from homeport.providers.harvester.infracluster.resource import BOOTSTRAP_CHECK
from homeport.providers.harvester.machine.console import read_console
from homeport.providers.harvester.machine.plan import Scope, key_of_vm
from homeport.providers.harvester.machine.sshkey import COMMAND, SUCCESS_FILE, USER, SshKeys
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

BOOTSTRAP = "BootstrapExecSucceeded"
NOT_FINISHED, NO_SSH, NO_NODE = "BootstrapNotFinished", "SSHUnavailable", "WaitingForNode"
_AGAIN_SECONDS = 10.0
_CONSOLE_SECONDS = 60.0
_AT_ONCE = 32
_NO_ADDRESS = "it reports no address, so that it can't be asked over SSH: check the DHCP server of its network"


@dataclass(slots=True)
class _Look:
    """`reason` is '' once the machine has reported success, and None before the first answer."""

    task: asyncio.Task[None] | None = None
    at: float = float("-inf")
    reason: str | None = None
    message: str = ""
    console_at: float = float("-inf")
    sign: Sign | None = None  # what its console says


class BootstrapChecks:
    """`run` has to run as long as checks are made; it ends the connections. Without it none is opened."""

    def __init__(self, keys: SshKeys, dial: DialOptions, clock: Clock) -> None:
        self._keys = keys
        self._dial = dial
        self._clock = clock
        self._looks: dict[str, _Look] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._running = False

    async def run(self) -> None:
        self._running = True
        try:
            await asyncio.Event().wait()
        finally:
            self._running = False
            tasks = [each.task for each in self._looks.values() if each.task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def forget(self, uid: str) -> None:
        look = self._looks.pop(uid, None)
        if look is not None and look.task is not None:
            look.task.cancel()

    async def public_key(self, scope: Scope) -> str:
        """Of the key pair that the check uses; '' if there is no check."""
        strategy = scope.infra.spec.virtual_machine_bootstrap_check.check_strategy
        if strategy != "ssh" or scope.infra_cluster is None or not scope.user_data:
            return ""
        return (await self._keys.ensure(scope.infra_cluster)).public

    def is_finished(self, scope: Scope, vm: Unstructured, *, joined: bool) -> bool:
        """What was once finished stays so: the file is gone after a restart, and a Node may be deleted."""
        look = self._looks.get(scope.uid)
        return (
            joined
            or scope.infra.status.initialization.provisioned
            or not _is_checked(scope, vm)
            or _has_succeeded(scope)
            or (look is not None and look.reason == "")
        )

    def converge(self, scope: Scope, vm: Unstructured, instance: Instance, *, joined: bool) -> Wait | None:
        """Reports, and looks again if it is time. None: nothing is to be waited for."""
        look = self._looks.setdefault(scope.uid, _Look())
        if scope.infra.spec.virtual_machine_bootstrap_check.check_strategy == "none":
            scope.report(BOOTSTRAP, True, "BootstrapCheckDisabled", "")
        elif joined or look.reason == "" or scope.infra.status.nodeupdated or _has_succeeded(scope):
            scope.report(BOOTSTRAP, True, "Succeeded", "")
        elif not _is_checked(scope, vm):
            text = "the VM can't be asked over SSH, because no user for that could be added to its user data"
            scope.report(BOOTSTRAP, False, NO_NODE, f"Node {scope.name} has not joined the cluster yet; {text}")
        else:
            return self._await(scope, instance, look)
        return None

    def _await(self, scope: Scope, instance: Instance, look: _Look) -> Wait | None:
        infra = scope.infra_cluster
        address = next((each.address for each in instance.addresses if each.type == "InternalIP"), "")
        if infra is not None and address and look.task is None and self._is_due(look):
            look.task = asyncio.create_task(
                self._look(scope, infra, address, look), name=f"bootstrap check of {scope.name}"
            )
        reason, text = look.reason or NOT_FINISHED, look.message or "it is being asked for the first time"
        if not address:
            text = _NO_ADDRESS
        if look.sign is not None:
            reason, text = look.sign.cause, look.sign.message
        message = _message(scope, text)
        scope.report(BOOTSTRAP, False, reason, message)
        if scope.infra.status.initialization.provisioned:
            return None
        return Wait(reason, message, after=_AGAIN_SECONDS)

    def postpone(self, scope: Scope) -> None:
        """The VM has no address, or none any more: what was reported while it had one is out of date."""
        if condition.find(scope.infra.status.conditions, BOOTSTRAP) and not _has_succeeded(scope):
            scope.report(BOOTSTRAP, False, NOT_FINISHED, _message(scope, _NO_ADDRESS))

    def _is_due(self, look: _Look) -> bool:
        return self._running and self._clock.monotonic() - look.at >= _AGAIN_SECONDS

    async def _look(self, scope: Scope, infra: KubevirtCluster, address: str, look: _Look) -> None:
        before = (look.reason, look.message, look.sign)
        try:
            async with self._turns:
                look.reason, look.message = await self._ask(infra, address)
                if look.reason:
                    await self._read_console(scope, look)
        finally:
            look.task, look.at = None, self._clock.monotonic()
        if (look.reason, look.message, look.sign) != before:
            scope.wake()

    async def _read_console(self, scope: Scope, look: _Look) -> None:
        """Not with every look: a console has many lines."""
        if self._clock.monotonic() - look.console_at >= _CONSOLE_SECONDS:
            look.console_at = self._clock.monotonic()
            sign = read_sign(await read_console(scope.session, key_of_vm(scope)))
            look.sign = None if sign is None or sign.cause == UNCERTAIN else sign  # systems log errors and go on

    async def _ask(self, infra: KubevirtCluster, address: str) -> tuple[str, str]:
        try:
            keys = await self._keys.get(infra)
            code = await run_command(self._dial, address, USER, keys.private, COMMAND)
        except ProviderError as error:
            return NO_SSH, f"{error.message}: check that port 22 of the VM is reachable from Homeport"
        except ApiError as error:
            return NO_SSH, f"the SSH key can't be read: {error.message}"
        if code == 0:
            return "", ""
        cure = "if this lasts, read /var/log/cloud-init-output.log or the serial console of the VM"
        return NOT_FINISHED, f"{SUCCESS_FILE} does not exist on {address}: {cure}"


def _message(scope: Scope, text: str) -> str:
    return f"Node {scope.name} has not joined the cluster yet, and the VM has not reported success: {text}"


def _is_checked(scope: Scope, vm: Unstructured) -> bool:
    annotations = vm.metadata.get("annotations") or {}
    strategy = scope.infra.spec.virtual_machine_bootstrap_check.check_strategy
    return strategy == "ssh" and annotations.get(BOOTSTRAP_CHECK) == "ssh"


def _has_succeeded(scope: Scope) -> bool:
    return condition.is_true(scope.infra.status.conditions, BOOTSTRAP)
