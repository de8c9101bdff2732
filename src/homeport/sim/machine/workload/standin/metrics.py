"""metrics-server: the group metrics.k8s.io, with usage of nodes and Pods that is computed from what Pods request."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from homeport.api.meta import Resource
from homeport.apiserver.crds.served import build_served
from homeport.apiserver.verb.write import encoder
from homeport.machinery.quantity import parse_quantity
from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.standin.certmanager.injector import API_SERVICE
from homeport.sim.machine.workload.standin.certmanager.status import with_condition
from homeport.sim.machine.workload.standin.image import runs, working, works
from homeport.sim.machine.workload.view import View

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import WorkloadCluster

GROUP: Final = "metrics.k8s.io"
SERVER: Final = ("metrics-server",)
_SECONDS = 60.0
_NAME = f"v1beta1.{GROUP}"
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_NODES = Resource(GROUP, "v1beta1", "NodeMetrics", "nodes", namespaced=False)
_PODS = Resource(GROUP, "v1beta1", "PodMetrics", "pods")
_SHARE = Decimal("0.25")  # of what is requested
_IDLE_CPU, _IDLE_MEMORY = Decimal("0.005"), Decimal(16 << 20)


class Metrics:
    """Serves the group while metrics-server runs and an APIService leads to it."""

    def __init__(self, cluster: WorkloadCluster) -> None:
        self._cluster = cluster
        self._serving = False
        self._measured = 0.0

    async def settle(self, view: View) -> None:
        service = next((each for each in view.all(API_SERVICE) if each["metadata"]["name"] == _NAME), None)
        ready = bool(working(view, *SERVER))
        if service is not None and runs_anywhere(view):
            await self._report(view, service, ready)
        if not ready or service is None:
            await self._stop()
            return
        self._serve()
        if view.now - self._measured >= _SECONDS:
            self._measured = view.now
            await self._measure(view)
        view.later(max(self._measured + _SECONDS - view.now, 0) + 1.0)

    async def _report(self, view: View, service: Json, ready: bool) -> None:
        reason, message = ("Passed", "all checks passed") if ready else ("MissingEndpoints", "no Pod is ready")
        condition = {"type": "Available", "status": str(ready), "reason": reason, "message": message}
        await view.set_status(API_SERVICE, service, {"conditions": with_condition(service, condition, view.stamp)})

    def _serve(self) -> None:
        if not self._serving:
            for kind in (_NODES, _PODS):
                served = build_served(_definition(kind))
                served.verbs = ("get", "list")
                self._cluster.server.catalog.add(served)
            self._serving = True

    async def _stop(self) -> None:
        if self._serving:
            for kind in (_NODES, _PODS):
                self._cluster.server.catalog.remove(GROUP, kind.plural)
                await self._replace(kind, {})
            self._serving, self._measured = False, 0.0

    async def _measure(self, view: View) -> None:
        pods = {
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": self._pod(view, pod)
            for pod in view.pods
            if works(view, pod)
        }
        used: dict[str, tuple[Decimal, Decimal]] = {}
        for pod in view.pods:
            found = pods.get(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
            cpu, memory = used.get(pod["spec"].get("nodeName", ""), (Decimal("0.05"), Decimal(512 << 20)))
            for each in found["containers"] if found is not None else ():
                cpu += parse_quantity(each["usage"]["cpu"]).amount
                memory += parse_quantity(each["usage"]["memory"]).amount
            used[pod["spec"].get("nodeName", "")] = (cpu, memory)
        nodes = {
            name: {**_head(_NODES, view, node), "usage": _usage(*used.get(name, (_IDLE_CPU, _IDLE_MEMORY)))}
            for name, node in view.nodes.items()
            if view.alive(name)
        }
        await self._replace(_PODS, pods)
        await self._replace(_NODES, nodes)

    def _pod(self, view: View, pod: Json) -> Json:
        containers = []
        for each in pod["spec"]["containers"]:
            asked = (each.get("resources") or {}).get("requests") or {}
            cpu = max(parse_quantity(str(asked.get("cpu", "0"))).amount * _SHARE, _IDLE_CPU)
            memory = max(parse_quantity(str(asked.get("memory", "0"))).amount * _SHARE, _IDLE_MEMORY)
            containers.append({"name": each["name"], "usage": _usage(cpu, memory)})
        return {**_head(_PODS, view, pod), "containers": containers}

    async def _replace(self, kind: Resource, wanted: dict[str, Json]) -> None:
        store = self._cluster.server.store
        for record in store.range(kind.qualified):
            if record.name not in wanted:
                await store.delete(kind.qualified, record.name, encoder({"metadata": {}}), expect=None)
        for name, obj in wanted.items():
            await store.put(kind.qualified, name, encoder(obj), expect=None)


def runs_anywhere(view: View) -> bool:
    """Whether a metrics-server is installed at all: other programs may serve the group, too."""
    return any(runs(pod, *SERVER) for pod in view.pods)


def _head(kind: Resource, view: View, obj: Json) -> Json:
    meta = {key: obj["metadata"][key] for key in ("name", "namespace", "labels") if key in obj["metadata"]}
    meta["creationTimestamp"] = view.stamp
    return {
        **kind.type_meta,
        "metadata": meta,
        "timestamp": view.stamp,
        "window": f"{int(_SECONDS)}s",
    }


def _usage(cpu: Decimal, memory: Decimal) -> dict[str, str]:
    return {"cpu": f"{int(cpu * 1000)}m", "memory": f"{int(memory) // 1024}Ki"}


def _definition(kind: Resource) -> Json:
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": _ANYTHING}}
    return {
        "metadata": {"name": kind.qualified},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {"kind": kind.kind, "plural": kind.plural, "singular": ""},
            "versions": [version],
        },
    }
