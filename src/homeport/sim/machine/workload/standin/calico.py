"""Calico's operator: with an Installation, it installs the network that nodes wait for."""

from __future__ import annotations

from typing import Final

from homeport.api.meta import Resource
from homeport.sim.machine.workload.kind import DAEMON_SET, DEPLOYMENT, NAMESPACE, SERVICE_ACCOUNT, Json
from homeport.sim.machine.workload.standin.image import container_of, repository, working
from homeport.sim.machine.workload.view import View, leaving

INSTALLATION: Final = Resource("operator.tigera.io", "v1", "Installation", "installations", namespaced=False)
OPERATOR: Final = ("tigera/operator",)
_SPACE = "calico-system"


async def settle_calico(view: View) -> None:
    operators = working(view, *OPERATOR)
    installations = [each for each in view.all(INSTALLATION) if not leaving(each)] if operators else []
    await _drop(view, {each["metadata"]["uid"] for each in view.all(INSTALLATION)})
    if not installations:
        return
    installation = installations[0]
    registry = str((installation.get("spec") or {}).get("registry") or "") or _registry(operators[0])
    owner = {
        **INSTALLATION.type_meta,
        "name": installation["metadata"]["name"],
        "uid": installation["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    await view.create({"metadata": {"name": _SPACE, "labels": {"name": _SPACE}}}, NAMESPACE)
    for name in ("calico-node", "calico-kube-controllers"):
        await view.create({"metadata": {"name": name, "namespace": _SPACE}}, SERVICE_ACCOUNT)
    known = {each["metadata"]["name"]: each for each in view.all(DAEMON_SET) if each["metadata"]["namespace"] == _SPACE}
    if "calico-node" not in known:
        await view.create(_node(registry, owner), DAEMON_SET)
        await view.create(_controllers(registry, owner), DEPLOYMENT)
    status = (known.get("calico-node") or {}).get("status") or {}
    ready = bool(status) and status.get("numberReady") == status.get("desiredNumberScheduled")
    await _report(view, installation, ready)


async def _drop(view: View, known: set[str]) -> None:
    """Deletes what was installed for an Installation that is gone."""
    for kind in (DAEMON_SET, DEPLOYMENT):
        for each in view.all(kind):
            owners = each["metadata"].get("ownerReferences") or ()
            if any(one["kind"] == INSTALLATION.kind and one["uid"] not in known for one in owners) and not leaving(
                each
            ):
                await view.delete(kind, each)


def _registry(pod: Json) -> str:
    """Where the operator's own image comes from, if that is a mirror; the operator's default otherwise."""
    image = repository(str((container_of(pod, *OPERATOR) or {}).get("image") or ""))
    found = image.removesuffix("tigera/operator").rstrip("/")
    return "docker.io" if found in ("", "quay.io") else found


def _node(registry: str, owner: Json) -> Json:
    labels = {"k8s-app": "calico-node"}
    mount = {"name": "cni-net-dir", "mountPath": "/host/etc/cni/net.d"}
    pod = {
        "hostNetwork": True,
        "serviceAccountName": "calico-node",
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists", "effect": each} for each in ("NoSchedule", "NoExecute")],
        "initContainers": [{"name": "install-cni", "image": f"{registry}/calico/cni", "volumeMounts": [mount]}],
        "containers": [{"name": "calico-node", "image": f"{registry}/calico/node", "volumeMounts": [mount]}],
        "volumes": [{"name": "cni-net-dir", "hostPath": {"path": "/etc/cni/net.d"}}],
    }
    return _workload("calico-node", labels, pod, owner)


def _controllers(registry: str, owner: Json) -> Json:
    labels = {"k8s-app": "calico-kube-controllers"}
    pod = {
        "serviceAccountName": "calico-kube-controllers",
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        "containers": [{"name": "calico-kube-controllers", "image": f"{registry}/calico/kube-controllers"}],
    }
    return _workload("calico-kube-controllers", labels, pod, owner)


def _workload(name: str, labels: Json, pod: Json, owner: Json) -> Json:
    meta = {"name": name, "namespace": _SPACE, "labels": labels, "ownerReferences": [owner]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {"metadata": meta, "spec": {"selector": {"matchLabels": labels}, "template": template}}


async def _report(view: View, installation: Json, ready: bool) -> None:
    reason = "AllObjectsAvailable" if ready else "ResourceNotReady"
    message = "All Objects Available" if ready else "DaemonSet calico-system/calico-node is not available"
    wanted = {"Ready": ready, "Progressing": not ready, "Degraded": False}
    before = {each["type"]: each for each in (installation.get("status") or {}).get("conditions") or ()}
    conditions = []
    for kind, holds in wanted.items():
        known, status = before.get(kind), "True" if holds else "False"
        same = known is not None and known["status"] == status
        moment = known.get("lastTransitionTime", view.stamp) if known is not None and same else view.stamp
        conditions.append(
            {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": moment}
        )
    await view.set_status(INSTALLATION, installation, {"conditions": conditions})
