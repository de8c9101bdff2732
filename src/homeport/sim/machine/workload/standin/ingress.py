"""Ingress controllers: an Ingress of their class has the address at which the controller answers."""

from __future__ import annotations

from typing import Final

from homeport.api.meta import Resource
from homeport.sim.machine.workload.kind import SERVICE, Json
from homeport.sim.machine.workload.standin.image import container_of, flag, working
from homeport.sim.machine.workload.view import View, leaving

INGRESS: Final = Resource("networking.k8s.io", "v1", "Ingress", "ingresses")
INGRESS_CLASS: Final = Resource("networking.k8s.io", "v1", "IngressClass", "ingressclasses", namespaced=False)
NGINX: Final = ("ingress-nginx/controller",)
# Images, and the names by which IngressClasses refer to what they run.
_CONTROLLERS = ((NGINX, "k8s.io/ingress-nginx"), (("traefik",), "traefik.io/ingress-controller"))


async def settle_ingresses(view: View) -> None:
    for images, controller in _CONTROLLERS:
        pods = working(view, *images)
        if not pods:
            continue
        named = flag(container_of(pods[0], *images) or {}, "controller-class", controller)
        classes = {each["metadata"]["name"] for each in view.all(INGRESS_CLASS) if each["spec"]["controller"] == named}
        ingress = _answers_at(view, pods)
        for each in view.all(INGRESS):
            if not leaving(each) and _class_of(each) in classes:
                await view.set_status(INGRESS, each, {"loadBalancer": {"ingress": ingress} if ingress else {}})


def _class_of(ingress: Json) -> str:
    notes = ingress["metadata"].get("annotations") or {}
    return str(ingress["spec"].get("ingressClassName") or notes.get("kubernetes.io/ingress.class") or "")


def _answers_at(view: View, pods: list[Json]) -> list[Json]:
    """The addresses of the Service in front of it; without one, those of its nodes if it uses their network."""
    labels, namespace = pods[0]["metadata"].get("labels") or {}, pods[0]["metadata"]["namespace"]
    for service in view.all(SERVICE):
        spec = service["spec"]
        selector = spec.get("selector") or {}
        if service["metadata"]["namespace"] != namespace or not selector or not selector.items() <= labels.items():
            continue
        if spec.get("type") == "LoadBalancer":
            found = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
            return [{key: each[key] for key in ("ip", "hostname") if each.get(key)} for each in found]
    return [{"ip": pod["status"]["hostIP"]} for pod in pods if pod["spec"].get("hostNetwork")]
