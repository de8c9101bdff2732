"""The worker of k0s: it introduces itself with its token, and its kubelet registers a Node."""

from __future__ import annotations

import asyncio

from homeport.client.errors import ApiError
from homeport.sim.machine.k0s import release
from homeport.sim.machine.k0s.agent import attach
from homeport.sim.machine.k0s.journal import Journal
from homeport.sim.machine.k0s.token import WORKER, read_token
from homeport.sim.machine.k0s.unit import Unit
from homeport.sim.machine.kubeadm.config import KubeadmError, Registering
from homeport.sim.machine.kubeadm.discovery import Discovery, RetryLater, authenticate, look, require
from homeport.sim.machine.kubeadm.init import registration_of
from homeport.sim.machine.shell.flag import parse_flags
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.facts import parse_version
from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.kubelet import Kubelet
from homeport.sim.machine.workload.node import (
    CONTROL_PLANE,
    KubeletProblem,
    Registration,
    build_node,
    parse_taints,
)

ROLE_LABEL = "node.k0sproject.io/role"
_REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_ALLOWED = (
    "--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (kubelet.kubernetes.io, "
    "node.kubernetes.io) or be in the specifically allowed set (see the documentation of kubelet's --node-labels)"
)


class KubeletDown(Exception):
    """The kubelet does not start. k0s itself goes on, and starts it again after a while."""


async def run_worker(machine: Machine, unit: Unit, journal: Journal) -> None:
    """Raises KubeadmError, KubeletDown."""
    path = unit.flag("token-file")
    if not path:
        raise KubeadmError(
            "failed to bootstrap kubelet client configuration: neither regular nor bootstrap kubeconfig files exist "
            "and no join token given; dunno how to make kubelet authenticate to API server"
        )
    try:
        wanted = read_token(machine, path, WORKER)
    except KubeadmError as broken:
        raise KubeadmError(
            f"failed to bootstrap kubelet client configuration: failed to get bootstrap kubeconfig: {broken}"
        ) from broken
    name = kubelet_arguments(unit).get("hostname-override") or machine.hostname.lower()
    journal.info("Bootstrapping client configuration", component="bootstrap-kubelet", node_name=name)
    cluster = await _bootstrap(machine, wanted, journal)
    journal.info("Successfully bootstrapped client configuration", component="bootstrap-kubelet")
    _check_profile(machine, cluster, unit)
    await run_kubelet(machine, cluster, unit, journal)
    await attach(machine, unit)


async def _bootstrap(machine: Machine, wanted: Discovery, journal: Journal) -> WorkloadCluster:
    """The cluster, once it has accepted the token."""
    failed = (
        "failed to bootstrap kubelet client configuration: failed to bootstrap client configuration: cannot create "
        "certificate signing request: "
    )
    deadline = machine.clock.monotonic() + machine.pace.patience
    last = ""
    while True:
        try:
            cluster = look(machine, wanted, f'Post "https://{wanted.shown}{_REQUESTS}"')
            break
        except RetryLater as reason:
            if str(reason) != last:
                last = str(reason)
                journal.warn(
                    f"Failed to bootstrap client configuration, retrying after backoff: {last}",
                    component="bootstrap-kubelet",
                )
            if machine.clock.monotonic() >= deadline:
                raise KubeadmError(failed + last) from reason
        await asyncio.sleep(machine.pace.poll)
    try:
        user = authenticate(cluster, wanted.token)
        require(cluster, user, "create", "certificatesigningrequests", group="certificates.k8s.io")
    except KubeadmError as refused:
        raise KubeadmError(failed + str(refused)) from refused
    return cluster


def _check_profile(machine: Machine, cluster: WorkloadCluster, unit: Unit) -> None:
    """Controllers publish the configuration of workers by profile and minor version, no newer than their own."""
    profile, minor = unit.flag("profile", "default"), parse_version(machine.k0s)[:2]
    known = ("default", "default-windows", *cluster.facts.configuration.get("workerProfiles", ()))
    if profile not in known or minor > parse_version(cluster.version())[:2]:
        name = f"worker-config-{profile}-{minor[0]}.{minor[1]}"
        raise KubeadmError(f'failed to load worker profile "{profile}": configmaps "{name}" not found')


async def run_kubelet(machine: Machine, cluster: WorkloadCluster, unit: Unit, journal: Journal) -> None:
    """Registers the Node. Raises KubeadmError, KubeletDown."""
    registration = registration_for(machine, cluster, unit)
    try:
        build_node(registration, machine.clock.now())
    except (KubeletProblem, ValueError) as problem:
        text = f"{problem}\n{_ALLOWED}" if "--node-labels" in str(problem) else str(problem)
        journal.error(
            f'"command failed" err="failed to validate kubelet flags: {text}"', component="kubelet", stream="stderr"
        )
        journal.warn("Process exited with code 1", component="kubelet")
        raise KubeletDown(str(problem)) from problem
    await machine.pace.take(machine.pace.kubelet)
    kubelet = Kubelet(machine, registration.name, cluster)
    try:
        await kubelet.register(registration)
    except ApiError as problem:
        journal.error(
            f'"Unable to register node with API server" err="{problem}" node="{registration.name}"', component="kubelet"
        )
        raise KubeletDown(str(problem)) from problem
    machine.cluster, machine.kubelet = cluster, kubelet
    machine.installed = machine.k0s.partition("+")[0]
    journal.info(f'"Successfully registered node" node="{registration.name}"', component="kubelet")
    cluster.refresh()


def registration_for(machine: Machine, cluster: WorkloadCluster, unit: Unit) -> Registration:
    """Raises KubeadmError for taints that k0s refuses; labels go to the kubelet, which has its own opinion of them."""
    arguments = kubelet_arguments(unit)
    labels = {ROLE_LABEL: "control-plane"} if unit.role == "controller" else {}
    for pair in unit.listed("labels"):
        key, _, value = pair.partition("=")
        labels[key] = value
    given = arguments.get("node-labels", "")
    arguments["node-labels"] = ",".join(filter(None, [*(f"{k}={v}" for k, v in labels.items()), given]))
    if unit.has("enable-cloud-provider"):
        arguments.setdefault("cloud-provider", "external")
    registering = Registering(name=machine.hostname.lower(), taints=_taints(unit), arguments=arguments)
    found = registration_of(machine, registering, cluster.facts, control_plane=False)
    found.annotations.clear()
    found.version = release.kubernetes(machine.k0s)
    if unit.role == "controller":  # k0s adds the role through the API: a kubelet may not
        found.labels[CONTROL_PLANE] = "true"
    return found


def _taints(unit: Unit) -> list[Json]:
    try:
        found = parse_taints(unit.flag("taints"))
    except KubeletProblem as wrong:
        spec = str(wrong).partition('"')[2].partition('"')[0]
        raise KubeadmError(
            f"failed to start worker components: can't parse taints for profile config map: invalid taint spec: {spec}"
        ) from wrong
    if unit.role == "controller" and not unit.has("no-taints") and not unit.has("single"):
        found.append({"key": CONTROL_PLANE, "effect": "NoSchedule"})
    return found


def kubelet_arguments(unit: Unit) -> dict[str, str]:
    return parse_flags(unit.flag("kubelet-extra-args").split())[1]
