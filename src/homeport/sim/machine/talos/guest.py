"""From power-on to a node: the configuration of the disk, of the platform, or of whoever sends one."""

from __future__ import annotations

import asyncio

from homeport.machinery.talos.certificate import KeyPair
from homeport.sim.machine.kubeadm.config import KubeadmError
from homeport.sim.machine.talos.apid import PORT, Apid
from homeport.sim.machine.talos.check import ConfigRefused
from homeport.sim.machine.talos.config import TalosConfig, read_config
from homeport.sim.machine.talos.run import run_machine
from homeport.sim.machine.talos.service import MachineService, maintenance_calls
from homeport.sim.machine.vm import Machine

STATE = "/system/state/config.yaml"


async def run_talos(machine: Machine, user_data: bytes, bootstrap: asyncio.Event) -> bool:
    """`user_data` is b"" where there is no machine configuration in it. True: the machine has become a node."""
    text = machine.disk.read(STATE) or user_data or await _maintenance(machine)
    try:
        config = read_config(text, machine)
        machine.disk.write(STATE, text, mode=0o600)
        if config.control_plane:
            _serve(machine, config, config.os_authority, bootstrap)
        await run_machine(machine, config, bootstrap)
    except (ConfigRefused, KubeadmError) as error:
        machine.console.say(f"[talos] failed: {error}")
        return False
    _serve_worker(machine, config, bootstrap)
    return True


def restart_talos(machine: Machine, bootstrap: asyncio.Event) -> None:
    """A machine that has been a node is one again: its API comes back as it was."""
    config = _saved(machine)
    if config is not None and config.control_plane:
        _serve(machine, config, config.os_authority, bootstrap)
    elif config is not None:
        _serve_worker(machine, config, bootstrap)


async def _maintenance(machine: Machine) -> bytes:
    given: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def apply(text: bytes) -> None:
        machine.console.say("[talos] received a machine configuration in maintenance mode")
        if not given.done():
            given.set_result(text)

    machine.host.listen(PORT, Apid(machine, maintenance_calls(apply), None))
    machine.waiting = True
    try:
        return await given
    finally:
        machine.waiting = False
        machine.host.unlisten(PORT)


def _serve(machine: Machine, config: TalosConfig, authority: KeyPair, bootstrap: asyncio.Event) -> None:
    def start() -> bool:
        if bootstrap.is_set() or machine.kubelet is not None or machine.cluster is not None:
            return False
        bootstrap.set()
        return True

    def save(text: bytes) -> None:
        machine.disk.write(STATE, text, mode=0o600)

    service = MachineService(machine, config, start, save)
    names = tuple(str(each) for each in config.machine.get("certSANs") or ())
    machine.host.listen(PORT, Apid(machine, service.calls, authority, names))


def _serve_worker(machine: Machine, config: TalosConfig, bootstrap: asyncio.Event) -> None:
    """A worker has no key of the authority: trustd on a control plane signs for it, if it knows the token."""
    if config.control_plane:
        return
    for peer in _control_planes(machine):
        if peer.machine.get("token") != config.machine.get("token"):
            continue
        if peer.os_authority.certificate == config.os_authority.certificate:
            _serve(machine, config, peer.os_authority, bootstrap)
            return
    machine.console.say("[talos] apid: trustd: rpc error: code = Unauthenticated desc = the token or CA is not its own")


def _control_planes(machine: Machine) -> list[TalosConfig]:
    planes = machine.cluster.control_planes.values() if machine.cluster is not None else ()
    found = (_saved(plane.guest) for plane in planes if isinstance(plane.guest, Machine))
    return [config for config in found if config is not None]


def _saved(machine: Machine) -> TalosConfig | None:
    text = machine.disk.read(STATE)
    if text is None:
        return None
    try:
        return read_config(text, machine)
    except ConfigRefused as refused:
        machine.console.say(f"[talos] failed: {refused}")
        return None
