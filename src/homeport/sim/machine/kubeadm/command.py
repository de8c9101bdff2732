"""The program `kubeadm`, as commands in user data call it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from homeport.sim.machine.kubeadm.config import Documents, KubeadmError, parse_documents
from homeport.sim.machine.kubeadm.init import run_init
from homeport.sim.machine.kubeadm.join import run_join
from homeport.sim.machine.shell.flag import parse_flags
from homeport.sim.machine.shell.shell import Invocation, Program, Ran
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload.facts import parse_version


def kubeadm(machine: Machine, joined: Callable[[Machine], Awaitable[None]]) -> Program:
    """`joined` is called when the machine has become a node."""

    async def run(call: Invocation) -> Ran:
        positional, flags = parse_flags(call.args[1:])
        verb = positional[0] if positional else ""
        if not machine.installed:
            return call.fail(f"sh: 1: {call.args[0]}: not found", 127)
        try:
            if verb == "version":
                return Ran(0, f"v{machine.installed}\n")
            if verb == "reset":
                machine.disk.wipe("/etc/kubernetes")
                return Ran()
            if verb not in ("init", "join"):
                return Ran()
            documents = _documents(machine, verb, positional, flags)
            if verb == "init":
                await run_init(machine, documents, frozenset(flags.get("skip-phases", "").split(",")))
            else:
                await run_join(machine, documents)
        except KubeadmError as error:
            text = str(error)
            return call.fail(text if text.startswith("error") else f"error: {text}")
        await joined(machine)
        return Ran()

    return run


def _documents(machine: Machine, verb: str, positional: list[str], flags: dict[str, str]) -> Documents:
    version = parse_version(machine.installed)
    path = flags.get("config", "")
    if path:
        text = machine.disk.text(path)
        if text is None:
            raise KubeadmError(f'unable to read config from "{path}": open {path}: no such file or directory')
        return parse_documents(text, version)
    if verb == "init":
        endpoint = flags.get("control-plane-endpoint", "")
        networking = {
            "podSubnet": flags.get("pod-network-cidr", ""),
            "serviceSubnet": flags.get("service-cidr", "10.96.0.0/12"),
        }
        cluster = {
            "controlPlaneEndpoint": endpoint,
            "networking": networking,
            "kubernetesVersion": flags.get("kubernetes-version", ""),
        }
        return Documents("v1beta3", {"ClusterConfiguration": cluster})
    if len(positional) < 2 or "token" not in flags:
        raise KubeadmError('discovery: Invalid value: "": bootstrapToken or file must be set')
    token = {
        "apiServerEndpoint": positional[1],
        "token": flags["token"],
        "caCertHashes": [each for each in flags.get("discovery-token-ca-cert-hash", "").split(",") if each],
        "unsafeSkipCAVerification": flags.get("discovery-token-unsafe-skip-ca-verification") == "true",
    }
    join = {"discovery": {"bootstrapToken": token}, "nodeRegistration": {"name": flags.get("node-name", "")}}
    if flags.get("control-plane") == "true":
        join["controlPlane"] = {}
    return Documents("v1beta3", {"JoinConfiguration": join})
