"""Machines on Harvester or KubeVirt: found by identity, made once, and seen to be gone with all that belongs to them.

The VirtualMachine has the machine's name, so the API server itself keeps a second one from being made; the label with
the UID of the KubevirtMachine tells whether the one of that name is ours. Objects are made in the order Secret, VM, and
go in the order VM, volumes and Secret.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.capi.family import canonical
from homeport.client.protocol import Key
from homeport.infra.error import Missing, Taken, Unreachable
from homeport.infra.machine.driver import CREATING, DELETING, POWERING_ON, require_user_data
from homeport.infra.protocol import Instance
from homeport.infra.vendor.task import Absence
from homeport.machinery import condition
from homeport.providers.harvester.cloud.node import Nodes
from homeport.providers.harvester.image import Image, choose, parse_name, ready
from homeport.providers.harvester.infracluster.belonging import KINDS, left_behind
from homeport.providers.harvester.infracluster.connection import HarvesterSession
from homeport.providers.harvester.infracluster.resource import (
    CLAIM,
    DATA_VOLUME,
    IMAGE,
    KEY_PAIR,
    MACHINE_UID,
    SECRET,
    TERMINAL,
    VM,
    VMI,
)
from homeport.providers.harvester.machine.bootstrap import BootstrapChecks
from homeport.providers.harvester.machine.drain import Drain
from homeport.providers.harvester.machine.instance import (
    check_shape,
    deletion_text,
    is_our_instance,
    is_ours,
    name_of,
    no_address_text,
    render_instance,
    report_migratable,
    taken_text,
)
from homeport.providers.harvester.machine.observation import (
    PROVISIONED,
    STOPPED,
    Machine,
    machine_of,
    reported_addresses,
    run_strategy,
    vm_id,
    why_not_running,
)
from homeport.providers.harvester.machine.plan import (
    Material,
    Scope,
    data_source,
    has_cloud_init,
    key_of_vm,
    marks,
    render_secret,
    render_vm,
    secret_name,
)
from homeport.runtime.cache import deleting, labels_of
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

_AGAIN_SECONDS = 30.0  # the watch wakes us; this is for when it can't


class MachineDriver:
    """Without `checks` a machine that runs is complete, whatever its user data does."""

    def __init__(self, clock: Clock, nodes: Nodes, checks: BootstrapChecks | None = None) -> None:
        self._absence = Absence(clock)
        self._checks = checks
        self._nodes = nodes
        self._drain = Drain(clock, nodes)
        self._sessions: dict[str, HarvesterSession] = {}  # whose watches wake the object of this UID

    # -- looking -----------------------------------------------------------------------------------------------

    async def observe(self, scope: Scope) -> Instance | None:
        if scope.never_asked:
            return None
        self._follow(scope)
        vm = await self._find(scope)
        if vm is None:
            return None
        vmi = await scope.session.watches.find(VMI, Key(vm.namespace, vm.name))
        if vmi is None:
            vmi = await scope.session.get(VMI, Key(vm.namespace, vm.name))
        joined = self._nodes.find(scope) is not None
        complete = self._checks is None or self._checks.is_finished(scope, vm, joined=joined)
        return render_instance(scope, machine_of(vm, vmi), complete=complete)

    async def _find(self, scope: Scope) -> Unstructured | None:
        key = key_of_vm(scope)
        for name in dict.fromkeys((key.name, scope.infra.metadata.name)):
            found = await scope.session.find(VM, Key(key.namespace, name))
            if found is not None and is_ours(scope, found):
                return found
        return await self._find_by_uid(scope) if scope.deleting else None

    async def _find_by_uid(self, scope: Scope) -> Unstructured | None:
        """Without a Machine nobody knows its name any more. The mark alone is not enough: clones carry it, too."""
        listed = await scope.session.list(VM, key_of_vm(scope).namespace, f"{MACHINE_UID}={scope.uid}")
        known = vm_id(scope.infra.spec.provider_id)
        return next((each for each in listed if each.uid == known), None)

    def _follow(self, scope: Scope) -> None:
        held = self._sessions.get(scope.uid)
        if held is not None and held is not scope.session:
            held.watches.forget(scope.uid)  # the credentials are others by now
        self._sessions[scope.uid] = scope.session
        key = key_of_vm(scope)
        scope.session.watches.follow(scope.uid, scope.wake, ((VM, key), (VMI, key)))

    def stop_watching(self, uid: str) -> None:
        held = self._sessions.pop(uid, None)
        if held is not None:
            held.watches.forget(uid)
        if self._checks is not None:
            self._checks.forget(uid)

    async def quiesce(self, scope: Scope) -> Wait | None:
        """Every call is answered when it is done: nothing goes on behind our back."""
        return None

    # -- growing -----------------------------------------------------------------------------------------------

    async def converge(self, scope: Scope, instance: Instance | None) -> Wait | None:
        if instance is None:
            return await self._create(scope)
        machine: Machine = instance.vendor
        if deleting(machine.vm):
            text = f"{deletion_text(machine.vm)}, but the Machine is not: delete the Machine to replace it"
            return Wait("VMDeleting", text, after=_AGAIN_SECONDS, warning=True)
        await self._hold_marks(scope, machine.vm)
        if TERMINAL in labels_of(machine.vm) or TERMINAL in labels_of(machine.vmi or Unstructured()):
            text = f"VM {name_of(machine.vm)} has the label {TERMINAL}: delete the Machine to replace it"
            return Wait("VMTerminal", text, warning=True)
        if instance.power != "on":
            return await self._start(scope, instance)
        report_migratable(scope, machine)
        wait = await self._drain.converge(scope, machine)
        if wait is not None:
            return wait
        if not instance.addresses and not scope.infra.status.initialization.provisioned:
            if self._checks is not None:
                self._checks.postpone(scope)
            return Wait("WaitingForAddress", no_address_text(machine), after=_AGAIN_SECONDS)
        wait = await self._nodes.converge(scope, instance)
        if wait is not None or self._checks is None:
            return wait
        joined = self._nodes.find(scope) is not None
        return self._checks.converge(scope, machine.vm, instance, joined=joined)

    async def _create(self, scope: Scope) -> Wait:
        require_user_data(scope)
        check_shape(scope)
        image = await self._image(scope)
        if isinstance(image, Wait):
            return image
        await self._check_addresses(scope)
        check_key = await self._checks.public_key(scope) if self._checks is not None else ""
        material = Material(image, await self._keys(scope), check_key)
        source = data_source(scope, image)
        secret, vm = render_secret(scope, material, source), render_vm(scope, material, source)
        if has_cloud_init(scope):
            await self._hold_secret(scope, secret)
        self._follow(scope)
        # The first machine of a session would wait for the next look otherwise.
        await scope.session.watches.start((VM, VMI), key_of_vm(scope).namespace)
        try:
            made = await scope.session.create(VM, vm)
        except Taken:
            made = await self._existing(scope)
        log.info("VM created", vm=name_of(made))
        return Wait(CREATING, f"VM {name_of(made)} is being created", after=_AGAIN_SECONDS)

    async def _existing(self, scope: Scope) -> Unstructured:
        """The answer to our create was lost, or the name is in use."""
        key = key_of_vm(scope)
        found = await scope.session.get(VM, key)
        if found is None:
            raise Missing(f"VM {key} existed a moment ago and is gone: trying again")
        if not is_ours(scope, found):
            raise Taken(taken_text("VM", key, found))
        scope.session.watches.note(VM, found)
        return found

    async def _hold_secret(self, scope: Scope, wanted: dict[str, object]) -> None:
        """As it has to be for a VM that does not exist yet."""
        key = Key(key_of_vm(scope).namespace, secret_name(scope.name))
        try:
            await scope.session.create(SECRET, wanted)
        except Taken:
            found = await scope.session.get(SECRET, key)
            if found is None:
                raise Missing(f"Secret {key} existed a moment ago and is gone: trying again") from None
            if labels_of(found).get(MACHINE_UID) != scope.uid:
                raise Taken(taken_text("Secret", key, found)) from None
            if found.get("data") != wanted["data"]:
                await scope.session.patch(SECRET, key, {"metadata": {"uid": found.uid}, "data": wanted["data"]})

    async def _check_addresses(self, scope: Scope) -> None:
        """Nobody but us keeps two VMs of a network from having the same static address."""
        wanted = {canonical(each.address): each for each in scope.addresses}
        for vmi in await scope.session.list(VMI, key_of_vm(scope).namespace) if wanted else ():
            for text in reported_addresses(vmi):
                taken = wanted.get(canonical(text))
                if taken is not None:
                    raise Taken(
                        f"{taken.address} of {taken.pool} is in use by VM {name_of(vmi)}: free it, or exclude it from "
                        "the pool and delete the Machine"
                    )

    async def _image(self, scope: Scope) -> Image | Wait | None:
        disk = scope.infra.spec.boot_disk
        if disk is None or not scope.session.harvester:
            return None
        wanted = parse_name(disk.image, key_of_vm(scope).namespace)
        images = await scope.session.watches.list(IMAGE, wanted.namespace)
        if images is None:
            images = await scope.session.list(IMAGE, wanted.namespace)
        chosen = choose(wanted, images, "spec.bootDisk.image")
        found = ready(chosen, "spec.bootDisk.image")
        if isinstance(found, Wait):
            image = (IMAGE, Key(chosen.namespace, chosen.name))
            scope.session.watches.follow(scope.uid, scope.wake, (image,))
        return found

    async def _keys(self, scope: Scope) -> list[tuple[str, str]]:
        found = []
        for number, text in enumerate(scope.infra.spec.key_pairs):
            key = parse_name(text, key_of_vm(scope).namespace)
            pair = await scope.session.find(KEY_PAIR, key)
            if pair is None:
                raise Missing(f"spec.keyPairs[{number}]: KeyPair {key} does not exist: create it in Harvester")
            found.append((f"{key.namespace}/{key.name}", str((pair.get("spec") or {}).get("publicKey") or "")))
        return found

    async def _start(self, scope: Scope, instance: Instance) -> Wait:
        machine: Machine = instance.vendor
        name = f"VM {name_of(machine.vm)}"
        if not scope.has_run:
            wait = why_not_running(machine, await self._volumes(scope))
            before = condition.find(scope.infra.status.conditions, PROVISIONED) or {}
            if wait.reason == CREATING and before.get("reason") == STOPPED:  # KubeVirt starts it again and again
                return Wait(STOPPED, str(before.get("message") or ""), after=_AGAIN_SECONDS, warning=True)
            return wait if instance.power != "off" else await self._power_on(scope, machine.vm)
        if instance.power == "unknown":  # it may run as before: its Node shows that
            raise Unreachable(f"the host of {name} does not respond: check the host in Harvester")
        if instance.power == "off":
            # Whoever stopped it had a reason: a machine that ran is not started against his will.
            return Wait("PoweredOff", f"{name} is stopped: power it on, or delete the Machine", 60.0, warning=True)
        return Wait("Restarting", f"{name} is not running at the moment: it is started again", after=_AGAIN_SECONDS)

    async def _power_on(self, scope: Scope, vm: Unstructured) -> Wait:
        """One that never ran was stopped by mistake, unless its template wants it so."""
        wanted = run_strategy({"spec": scope.infra.spec.virtual_machine_template.spec})
        if wanted == "Halted" or run_strategy(vm) == wanted:
            text = f"VM {name_of(vm)} is stopped by its runStrategy {wanted}: power it on, or correct the template"
            return Wait("PoweredOff", text, 60.0, warning=True)
        body = {"metadata": {"uid": vm.uid}, "spec": {"runStrategy": wanted}}
        await scope.session.patch(VM, Key(vm.namespace, vm.name), body)
        return Wait(POWERING_ON, f"VM {name_of(vm)} is being powered on", after=_AGAIN_SECONDS)

    async def _volumes(self, scope: Scope) -> Sequence[Unstructured]:
        listed = await scope.session.watches.list(DATA_VOLUME, key_of_vm(scope).namespace)
        return [each for each in listed or () if labels_of(each).get(MACHINE_UID) == scope.uid]

    async def _hold_marks(self, scope: Scope, vm: Unstructured) -> None:
        """After a move to another plane objects have other UIDs: what belongs to the machine follows."""
        before = labels_of(vm).get(MACHINE_UID, "")
        if before == scope.uid:
            return
        wanted = marks(scope)
        for kind in KINDS if before else ():
            for each in await scope.session.list(kind, vm.namespace, f"{MACHINE_UID}={before}"):
                await _label(scope, kind, each, wanted)
        await _label(scope, VM, vm, wanted)

    # -- shrinking ---------------------------------------------------------------------------------------------

    async def release(self, scope: Scope, instance: Instance | None) -> Wait | None:
        if instance is not None:
            return await self._delete(scope, instance.vendor)
        left = await self._left(scope)
        if left is not None:
            return left
        wait = self._absence.confirm(scope.uid, vm_id(scope.infra.spec.provider_id))
        if wait is None:
            self.stop_watching(scope.uid)
        return wait

    async def _delete(self, scope: Scope, machine: Machine) -> Wait:
        self._absence.expect(scope.uid)
        if not deleting(machine.vm):
            await self._hold_marks(scope, machine.vm)
            await self._mark_claims(scope, machine.vm)
            await scope.session.delete(VM, machine.vm)
        return Wait(DELETING, deletion_text(machine.vm), after=_AGAIN_SECONDS)

    async def _mark_claims(self, scope: Scope, vm: Unstructured) -> None:
        """Volumes that others made on our behalf: once the VM is gone, only their labels tell whose they are."""
        own = {f"{vm.name}-"}
        inner = ((vm.get("spec") or {}).get("template") or {}).get("spec") or {}
        for volume in inner.get("volumes") or ():
            name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            if not name or not any(str(name).startswith(prefix) for prefix in own):
                continue
            for kind in (CLAIM, DATA_VOLUME):
                found = await scope.session.find(kind, Key(vm.namespace, str(name)))
                if found is not None and MACHINE_UID not in labels_of(found):
                    await _label(scope, kind, found, marks(scope))

    async def _left(self, scope: Scope) -> Wait | None:
        """The VM is gone: its instance has to be, then what it used. Asked of the server itself."""
        if scope.never_asked:
            return None
        key = key_of_vm(scope)
        vmi = await scope.session.get(VMI, key)
        if vmi is not None and is_our_instance(scope, vmi):
            return Wait(DELETING, f"VM {key} is being stopped", after=_AGAIN_SECONDS)

        async def listed(kind: Resource) -> list[Unstructured]:
            return await scope.session.list(kind, key.namespace, f"{MACHINE_UID}={scope.uid}")

        left: list[str] = []
        for kind, each in await left_behind(listed):
            left.append(f"{kind.kind} {each.name}")
            if not deleting(each):
                await scope.session.delete(kind, each)
        if not left:
            return None
        return Wait(DELETING, f"VM {key} is gone; {', '.join(left[:3])} are being deleted", after=2.0, quiet=True)


async def _label(scope: Scope, kind: Resource, obj: Unstructured, labels: dict[str, str]) -> None:
    body = {"metadata": {"uid": obj.uid, "labels": labels}}
    await scope.session.patch(kind, Key(obj.namespace, obj.name), body)
