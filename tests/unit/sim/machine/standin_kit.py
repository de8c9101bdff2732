"""Add-ons as their charts install them, as far as the stand-ins look at them. Written for these tests."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.api.meta import Resource
from homeport.client.protocol import Key, Query
from homeport.runtime.event import EVENT
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kind import DAEMON_SET, DEPLOYMENT, NAMESPACE, SERVICE, Json
from unit.sim.machine.sim_kit import Sim, join_data

DEFINITION = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
VALIDATING = Resource(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False
)
EVERYWHERE = [{"operator": "Exists"}]


def definition(kind: Resource, *, status: bool = False) -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: Json = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if status:
        version["subresources"] = {"status": {}}
    names = {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower(), "listKind": f"{kind.kind}List"}
    spec = {
        "group": kind.group,
        "names": names,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "versions": [version],
    }
    return {"metadata": {"name": kind.qualified}, "spec": spec}


def workload(name: str, namespace: str, image: str, **more: Any) -> Json:
    """A Deployment or DaemonSet."""
    labels = {"app": name, **more.pop("labels", {})}
    container = {"name": "c", "image": image, **more.pop("container", {})}
    others = more.pop("containers", [])
    pod = {"tolerations": EVERYWHERE, "containers": [container, *others], **more.pop("pod", {})}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": labels}, "template": template, **more}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def webhook(name: str, service: Json, path: str, rule: Json) -> Json:
    return {
        "name": name,
        "clientConfig": {"service": {**service, "path": path}},
        "rules": [{"operations": ["CREATE", "UPDATE"], **rule}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
    }


async def workers(sim: Sim, *names: str, **more: Any) -> WorkloadCluster:
    cluster = await sim.cluster_up(**more)
    for name in names:
        await sim.boot(name, join_data(sim.secrets))
    return cluster


METALLB = "metallb-system"
POOL = Resource("metallb.io", "v1beta1", "IPAddressPool", "ipaddresspools")
L2 = Resource("metallb.io", "v1beta1", "L2Advertisement", "l2advertisements")


async def install_metallb(cluster: WorkloadCluster, registry: str = "quay.io") -> None:
    hook = {"name": "metallb-webhook-service", "namespace": METALLB}
    rule = {"apiGroups": ["metallb.io"], "apiVersions": ["v1beta1"], "resources": ["ipaddresspools"]}
    path = "/validate-metallb-io-v1beta1-ipaddresspool"
    configuration = {
        "metadata": {"name": "metallb-webhook-configuration"},
        "webhooks": [webhook("ipaddresspoolvalidationwebhook.metallb.io", hook, path, rule)],
    }
    controller = workload("controller", METALLB, f"{registry}/metallb/controller:v0.15.2")
    speaker = workload(
        "speaker",
        METALLB,
        f"{registry}/metallb/speaker:v0.15.2@sha256:abc",
        pod={"hostNetwork": True, "tolerations": EVERYWHERE},
    )
    ports = [{"port": 443, "targetPort": 9443}]
    await cluster.put(
        [
            ({"metadata": {"name": METALLB}}, NAMESPACE),
            (definition(POOL), DEFINITION),
            (definition(L2), DEFINITION),
            (controller, DEPLOYMENT),
            (speaker, DAEMON_SET),
            ({"metadata": hook, "spec": {"selector": {"app": "controller"}, "ports": ports}}, SERVICE),
            (configuration, VALIDATING),
        ]
    )
    await settle(cluster)


async def settle(cluster: WorkloadCluster, seconds: float = 5) -> None:
    await asyncio.sleep(seconds)
    await cluster.controllers.idle()


def pool(name: str, *addresses: str, **spec: Any) -> tuple[Json, Resource]:
    return {"metadata": {"name": name, "namespace": METALLB}, "spec": {"addresses": list(addresses), **spec}}, POOL


def advertisement(name: str = "all", **spec: Any) -> tuple[Json, Resource]:
    return {"metadata": {"name": name, "namespace": METALLB}, "spec": spec}, L2


def balanced(
    name: str, *ports: int | tuple[str, int], annotations: Json | None = None, **spec: Any
) -> tuple[Json, Resource]:
    given = [("TCP", each) if isinstance(each, int) else each for each in ports or (80,)]
    listed = [{"name": f"{kind}{number}".lower(), "protocol": kind, "port": number} for kind, number in given]
    meta = {"name": name, "namespace": "default", "annotations": annotations or {}}
    return {
        "metadata": meta,
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": listed, **spec},
    }, SERVICE


async def addresses(cluster: WorkloadCluster, name: str, namespace: str = "default") -> list[str]:
    service = await cluster.client().get(SERVICE, Key(namespace, name))
    return [each["ip"] for each in ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()]


async def events(cluster: WorkloadCluster, name: str) -> list[tuple[str, str]]:
    """(reason, message) of the events about an object."""
    found = (await cluster.client().list(EVENT, Query())).items
    return [(each["reason"], each["message"]) for each in found if each["involvedObject"]["name"] == name]
