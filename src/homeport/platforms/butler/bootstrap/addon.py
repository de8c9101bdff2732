"""The add-ons of a management cluster, as add-ons of the catalogue. Pure."""

from __future__ import annotations

from typing import Any

from homeport.machinery.talos.vip import KUBE_PRISM_PORT
from homeport.platforms.butler.bootstrap.plan import has_cilium, has_longhorn
from homeport.platforms.butler.normal.addons import AddonModel
from homeport.platforms.butler.normal.bootstrap import BootstrapModel
from homeport.platforms.butler.tenant.addon import addon_requests
from homeport.platforms.butler.tenant.blueprint import AddonRequest

Json = dict[str, Any]

_MOST_REPLICAS = 3  # copies of a volume
_AGENT = "CHOWN KILL NET_ADMIN NET_RAW IPC_LOCK SYS_ADMIN SYS_RESOURCE DAC_OVERRIDE FOWNER SETGID SETUID"
_CLEANER = "NET_ADMIN SYS_ADMIN SYS_RESOURCE"
# Talos mounts cgroups itself, refuses to load kernel modules for Pods, and offers the API on every machine.
_CILIUM_ON_TALOS: Json = {
    "cgroup": {"autoMount": {"enabled": False}, "hostRoot": "/sys/fs/cgroup"},
    "securityContext": {"capabilities": {"ciliumAgent": _AGENT.split(), "cleanCiliumState": _CLEANER.split()}},
    "k8sServiceHost": "localhost",
    "k8sServicePort": KUBE_PRISM_PORT,
}


def bootstrap_addons(model: BootstrapModel) -> tuple[AddonRequest, ...]:
    found = addon_requests(_models(model), model.load_balancer)
    return tuple(_completed(model, each) for each in found)


def _models(model: BootstrapModel) -> list[AddonModel]:
    """What a ClusterBootstrap does not mention is installed; load balancers need addresses."""
    given = model.addons
    found: list[AddonModel] = []
    if has_cilium(model):
        found.append(AddonModel("cni", "cilium", given.cni.version if given.cni else ""))
    if given.load_balancer is None or given.load_balancer.type != "none":
        found.append(AddonModel("loadBalancer", "metallb", given.load_balancer.version if given.load_balancer else ""))
    if given.cert_manager is None or given.cert_manager.enabled is not False:
        found.append(
            AddonModel("certManager", "cert-manager", given.cert_manager.version if given.cert_manager else "")
        )
    if has_longhorn(model):
        found.append(AddonModel("storage", "longhorn", given.storage.version if given.storage else ""))
    if given.ingress is None or (given.ingress.enabled is not False and given.ingress.type != "none"):
        found.append(AddonModel("ingress", "traefik", given.ingress.version if given.ingress else ""))
    if given.git_ops is None or (given.git_ops.enabled is not False and given.git_ops.type != "none"):
        found.append(AddonModel("gitOps", "fluxcd"))
    return found


def _completed(model: BootstrapModel, request: AddonRequest) -> AddonRequest:
    values, parameters = dict(request.values), dict(request.parameters)
    if request.addon == "cilium":
        cni = model.addons.cni
        parameters["hubble"] = cni is None or cni.hubble_enabled is not False
        values |= _CILIUM_ON_TALOS
    if request.addon == "longhorn":
        parameters["replicas"] = _replicas(model)
    return AddonRequest(
        name=request.name, addon=request.addon, version=request.version, parameters=parameters, values=values
    )


def _replicas(model: BootstrapModel) -> int:
    """Never more copies than there are Nodes that Pods run on: the volumes would stay degraded."""
    wanted = model.addons.storage.replica_count if model.addons.storage else None
    nodes = model.workers.replicas if model.workers is not None else model.control_plane.replicas
    return wanted or min(_MOST_REPLICAS, nodes)
