"""From power-on to a node: firmware, operating system, user data, commands."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping

from homeport.sim.machine.download import DownloadError, check_reach, downloads
from homeport.sim.machine.instance import instance_data, local_hostname, parse_meta_data
from homeport.sim.machine.k0s.command import K0s, resume
from homeport.sim.machine.kubeadm.command import kubeadm
from homeport.sim.machine.shell.program import TOOLS
from homeport.sim.machine.shell.shell import NOT_FOUND, Invocation, Program, Ran, Shell
from homeport.sim.machine.sshd import keys_path
from homeport.sim.machine.talos.guest import restart_talos, run_talos
from homeport.sim.machine.userdata.cloudconfig import CloudConfig, Command, File, User, read_cloud_config
from homeport.sim.machine.userdata.ignition import run_ignition
from homeport.sim.machine.userdata.part import UserData, parse_user_data, unpacked
from homeport.sim.machine.vm import Machine

Joined = Callable[[Machine], Awaitable[None]]

_PACKAGE = re.compile(r"(kubeadm|kubelet)(?:[=-]v?(\d+\.\d+\.\d+)\S*)?")
_DEFAULT_USERS = {"ubuntu": "ubuntu", "debian": "debian", "rocky": "rocky", "centos": "centos", "alma": "almalinux"}
_REPOSITORY = re.compile(r"core:/stable:/v(\d+\.\d+)")


async def boot(machine: Machine, joined: Joined, bootstrap: asyncio.Event) -> None:
    """Runs until the machine has become what its data make of it, or has said why not."""
    say = machine.console.say
    machine.console.restart()
    machine.disk.wipe("/run")  # it is in memory
    say("UEFI firmware" if machine.uefi else "SeaBIOS")
    await machine.pace.take(machine.pace.firmware)
    if not _boots(machine):
        return
    machine.state = "running"
    machine.host.set_up(True)
    if machine.provisioned:
        say(f"{machine.image.name}: services started")
        if machine.image.reader == "talos":
            restart_talos(machine, bootstrap)
        else:
            await resume(machine, joined)
        return
    if machine.image.reader == "none":
        say(f"{machine.image.name} does not read user data")
        return
    await machine.pace.take(machine.pace.cloud_init)
    await _await_address(machine)
    try:
        data = parse_user_data(machine.user_data, _instance(machine))
    except ValueError as broken:
        say(f"user data can't be read: {broken}")
        return
    for warning in data.warnings:
        say(f"cloud-init: WARNING: {warning}")
    await _carry_out(machine, data, joined, bootstrap)
    # Talos tries again after every start, until it is a node.
    machine.provisioned = machine.image.reader != "talos" or machine.kubelet is not None


def _boots(machine: Machine) -> bool:
    image, say = machine.image, machine.console.say
    if image.iso or not image.bootable:
        why = "is an installation medium, not a disk with a system on it" if image.iso else "has no system on it"
        say(f"Booting from Hard Disk... failed: {image.name} {why}")
        say("No bootable device.")
        return False
    if (machine.uefi and not image.uefi) or (not machine.uefi and not image.bios):
        say(f"{image.name} has no boot loader for {'UEFI' if machine.uefi else 'legacy BIOS'}")
        say("No bootable device.")
        return False
    return True


async def _await_address(machine: Machine) -> None:
    deadline = machine.clock.monotonic() + machine.pace.patience
    if not machine.address:
        machine.console.say("systemd-networkd-wait-online: waiting for an address")
    while not machine.address and machine.clock.monotonic() < deadline:  # noqa: ASYNC110 - as the real one does it
        await asyncio.sleep(machine.pace.poll)


def _instance(machine: Machine) -> dict[str, object]:
    meta = parse_meta_data(machine.meta_data)
    machine.hostname = local_hostname(meta, machine.name)
    addresses = tuple(machine.host.addresses)
    return instance_data(
        meta, name=machine.name, instance_id=machine.id, platform=machine.platform, addresses=addresses
    )


async def _carry_out(machine: Machine, data: UserData, joined: Joined, bootstrap: asyncio.Event) -> None:
    reader, say = machine.image.reader, machine.console.say
    if reader == "talos":
        await _carry_out_talos(machine, data, joined, bootstrap)
        return
    if data.kind == "none":
        say(f"{reader}: no user data")
        return
    k0s = K0s(machine, joined)
    environment = {"HOME": "/root", "PATH": "/usr/bin"}
    shell = Shell(machine.disk, machine.console, programs(machine, k0s, joined), environment, machine.programs)
    if reader == "ignition" and data.kind == "ignition":
        try:
            await run_ignition(data.config, shell)
        except ValueError as broken:
            say(f"ignition: failed: {broken}")
        return
    if data.kind != "cloud-init" or reader != "cloud-init":
        say(f"{reader}: the user data is {data.kind} data, which {machine.image.name} does not read")
        return
    await _run_cloud_init(machine, data, shell)


async def _carry_out_talos(machine: Machine, data: UserData, joined: Joined, bootstrap: asyncio.Event) -> None:
    if data.kind != "talos":
        what = (
            "no machine configuration"
            if data.kind == "none"
            else f"{data.kind} data instead of a machine configuration"
        )
        machine.console.say(f"[talos] {what}: this machine is reachable in maintenance mode")
    if await run_talos(machine, unpacked(machine.user_data) if data.kind == "talos" else b"", bootstrap):
        await joined(machine)


# -- cloud-init ----------------------------------------------------------------------------------------------------


async def _run_cloud_init(machine: Machine, data: UserData, shell: Shell) -> None:
    config = read_cloud_config(data.config)
    say = machine.console.say
    say(f"cloud-init: datasource {machine.platform}")
    for module, why in config.failures:
        say(f"cloud-init: Running module {module} failed: {why}")
    for hook in data.boothooks:
        await shell.script(hook)
    if config.bootcmd:
        await shell.script(_script(config.bootcmd))
    _write(machine, [file for file in config.files if not file.defer])
    _set_hostname(machine, config)
    _add_users(machine, config)
    _write(machine, [file for file in config.files if file.defer])
    if config.packages and not _install(machine, config.packages):
        say("cloud-init: Running module package_update_upgrade_install failed: packages could not be installed")
    for script in data.scripts:
        await shell.script(script)
    if config.runcmd:
        await shell.script(_script(config.runcmd))
    say("cloud-init: finished")


def _script(commands: list[Command]) -> str:
    """All commands are one script, so that a variable of one is there for the next; none stops the others."""
    return "\n".join(each if isinstance(each, str) else " ".join(map(_quoted, each)) for each in commands) + "\n"


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _write(machine: Machine, files: list[File]) -> None:
    for file in files:
        machine.disk.write(file.path, file.content, mode=file.mode, owner=file.owner, append=file.append)


def _add_users(machine: Machine, config: CloudConfig) -> None:
    """Those that are listed; without a list, the default user of the image. Keys beside the list are for that one."""
    default = _DEFAULT_USERS.get(machine.image.family, "cloud-user")
    for user in config.users or [User("default")]:
        name, keys = user.name, user.keys
        if name == "default":
            name, keys = default, (*keys, *config.keys)
        if config.users:
            machine.console.say(f"cloud-init: user {name}")
        if keys:
            text = "".join(f"{key.strip()}\n" for key in keys)
            machine.disk.write(keys_path(name), text.encode(), mode=0o600, owner=f"{name}:{name}")


def _set_hostname(machine: Machine, config: CloudConfig) -> None:
    if not config.preserve_hostname and (config.hostname or config.fqdn):
        machine.hostname = (config.hostname or config.fqdn).partition(".")[0]


# -- programs that change the machine itself -----------------------------------------------------------------------


def programs(machine: Machine, k0s: K0s, joined: Joined) -> Mapping[str, Program]:
    system = _System(machine, k0s)
    own: dict[str, Program] = {
        "kubeadm": kubeadm(machine, joined),
        "hostnamectl": system.hostnamectl,
        "hostname": system.hostname,
        "systemctl": system.systemctl,
        **downloads(machine),
        **dict.fromkeys(("command", "which", "type"), system.command),
        **dict.fromkeys(("apt-get", "apt", "yum", "dnf", "tdnf", "zypper"), system.package_manager),
        **k0s.programs(),
    }
    return {name: _if_there(machine, name, program) for name, program in {**TOOLS, **own}.items()}


class _System:
    """Programs of the operating system."""

    def __init__(self, machine: Machine, k0s: K0s) -> None:
        self._machine = machine
        self._k0s = k0s

    async def hostnamectl(self, call: Invocation) -> Ran:
        words = _words(call)
        if words[:1] in (["set-hostname"], ["hostname"]) and len(words) > 1:
            self._machine.hostname = words[1]
        return Ran()

    async def hostname(self, call: Invocation) -> Ran:
        words = _words(call)
        if words:
            self._machine.hostname = words[0]
            return Ran()
        shown = self._machine.address if "-I" in call.args or "-i" in call.args else self._machine.hostname
        return Ran(0, f"{shown}\n")

    async def package_manager(self, call: Invocation) -> Ran:
        words = _words(call)
        if words[:1] == ["install"] and not _install(self._machine, words[1:]):
            return Ran(100)
        if words[:1] == ["update"]:
            _packages_reachable(self._machine)  # a warning: the lists that are there are used
        return Ran()

    async def systemctl(self, call: Invocation) -> Ran:
        words = _words(call)
        starts = words[:1] in (["start"], ["restart"]) or (words[:1] == ["enable"] and "--now" in call.args)
        for name in words[1:]:
            if self._k0s.is_service(name):
                return Ran(0 if not starts or await self._k0s.start() else 5)
            if name.removesuffix(".service") in ("k0scontroller", "k0sworker"):
                return call.fail(f"Failed to {words[0]} {name}: Unit {name} not found.", 5)
        return Ran()

    async def command(self, call: Invocation) -> Ran:
        """kubeadm is there once its package is."""
        asks = call.args[1:2] == ["-v"] or call.args[0] in ("which", "type")
        name = call.args[-1]
        if asks and ((name == "kubeadm" and not self._machine.installed) or not self._machine.has(name)):
            return Ran(1)
        return await TOOLS["command"](call)


def _words(call: Invocation) -> list[str]:
    """The arguments that are not options."""
    return [each for each in call.args[1:] if not each.startswith("-")]


def _if_there(machine: Machine, name: str, program: Program) -> Program:
    if machine.has(name):
        return program

    async def run(call: Invocation) -> Ran:
        """Not on this image; a package may bring it."""
        return await program(call) if machine.has(name) else call.fail(f"sh: 1: {call.args[0]}: not found", NOT_FOUND)

    return run


def _packages_reachable(machine: Machine) -> bool:
    host = "http://archive.ubuntu.com" if machine.image.family in ("ubuntu", "linux") else "https://mirrors.example.com"
    try:
        check_reach(machine, host)
    except DownloadError as failed:
        machine.console.say(f"E: Failed to fetch {host}: {failed}")
        return False
    return True


def _install(machine: Machine, packages: list[str]) -> bool:
    """Packages are there for the asking, but for those of Kubernetes: these need a version or their repository."""
    if packages and not _packages_reachable(machine):
        return False
    for package in packages:
        found = _PACKAGE.fullmatch(package)
        if found is None:
            machine.programs.add(package.partition("=")[0].removesuffix(".io"))
            continue
        version = found.group(2) or _repository_version(machine)
        if not version:
            machine.console.say(f"E: Unable to locate package {package}")
            return False
        machine.installed = version
        machine.programs.update(("kubelet", "kubectl", "crictl"))
        machine.console.say(f"Setting up {found.group(1)} ({version})")
    return True


def _repository_version(machine: Machine) -> str:
    for folder in ("/etc/apt/sources.list.d", "/etc/yum.repos.d"):
        for path in machine.disk.under(folder):
            found = _REPOSITORY.search(machine.disk.text(path) or "")
            if found:
                return f"{found.group(1)}.0"
    return ""
