"""Checks of workload clusters: whether they answer, Nodes, network plugin, cloud controller manager, Pods."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from homeport.api.meta import Unstructured
from homeport.app.doctor.diagnosis import Diagnosis
from homeport.app.doctor.fact import Facts
from homeport.app.object.networkplugin import network_advice, without_network_plugin
from homeport.capi.name import GROUP
from homeport.client.protocol import Key
from homeport.machinery import condition
from homeport.runtime.clock import parse_time

_NETWORK = re.compile(r"cni|network plugin|NetworkPluginNotReady", re.I)
_UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
_MANAGER = re.compile(r"cloud-controller|ccm", re.I)
_CLOUD_SECONDS = 180.0  # a manager that is just being started removes the taint earlier
_PULL = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName"})


def unreachable(facts: Facts) -> Iterator[Diagnosis]:
    """A control plane that was initialized and does not answer."""
    for cluster, workload in facts.workloads.items():
        if workload.error:
            text = f"the API server of the cluster does not answer: {workload.error}"
            cure = facts.commands.run("describe", "cluster", cluster.name, "-n", cluster.namespace)
            yield Diagnosis("ControlPlaneUnreachable", "endpoint", "Cluster", str(cluster), text, cure)


def network_plugin(facts: Facts) -> Iterator[Diagnosis]:
    """Nodes that wait for a network plugin."""
    for cluster, workload in facts.workloads.items():
        names = [_name(node) for node in workload.nodes if _NETWORK.search(_not_ready(node))]
        if names:
            text = f"no network plugin (CNI) is installed: {_several(names)} can't run Pods. Install one"
            cure = facts.commands.on_cluster(cluster.name, cluster.namespace, "apply", "-f", "CNI.yaml")
            yield Diagnosis("NoNetworkPlugin", "addon", "Cluster", str(cluster), text, cure)


def no_network_plugin_expected(facts: Facts) -> Iterator[Diagnosis]:
    """Before the first Node can report it."""
    clusters = [each for each in facts.of_kind("Cluster") if str(each.get("apiVersion")).startswith(f"{GROUP}/")]
    new = [each for each in clusters if not _initialized(each)]
    found = without_network_plugin(new, facts.objects)
    if found:
        first, *others = found
        more = f". The same is true for Clusters {', '.join(_place(each) for each in others[:5])}" if others else ""
        more += f" and {len(others) - 5} more" if len(others) > 5 else ""
        text, cure = network_advice(first) + more, facts.commands.kubectl("explain", "clusteraddon.spec")
        key = f"{first.namespace}/{first.name}"
        yield Diagnosis("NoNetworkPluginExpected", "addon", "Cluster", key, text, cure, serious=False)


def _place(obj: Unstructured) -> str:
    return f"{obj.namespace}/{obj.name}".removeprefix("default/")


def waits_for_network(facts: Facts, machine: Unstructured) -> bool:
    """Whether its Node is one of those that `network_plugin` finds."""
    cluster = str((machine.get("spec") or {}).get("clusterName"))
    node = ((machine.get("status") or {}).get("nodeRef") or {}).get("name")
    workload = facts.workloads.get(Key(machine.namespace, cluster))
    nodes = workload.nodes if workload is not None else ()
    return any(_name(each) == node and _NETWORK.search(_not_ready(each)) for each in nodes)


def _initialized(cluster: Mapping[str, Any]) -> bool:
    return bool(((cluster.get("status") or {}).get("initialization") or {}).get("controlPlaneInitialized"))


def cloud_controller(facts: Facts) -> Iterator[Diagnosis]:
    """Nodes that a cloud controller manager should initialize: it has not yet, or it never will."""
    for cluster, workload in facts.workloads.items():
        waiting = [node for node in workload.nodes if _UNINITIALIZED in _taints(node)]
        if not waiting:
            continue
        seconds = max(_age(node, facts.now) for node in waiting)
        text = f"{_several([_name(node) for node in waiting])} waits for a cloud controller manager to remove taint "
        late = seconds > _CLOUD_SECONDS
        text += f"{_UNINITIALIZED}" + (f"; {_manager(workload.pods)}" if late else "; it may only be too early")
        cure = facts.commands.on_cluster(cluster.name, cluster.namespace, "get", "pods", "-A")
        yield Diagnosis("NoCloudController", "addon", "Cluster", str(cluster), text, cure, serious=late)


def _manager(pods: Sequence[Mapping[str, Any]]) -> str:
    """What is known about the cloud controller manager in the cluster."""
    for pod in pods:
        if _MANAGER.search(_name(pod)):
            reason, said = _waiting(pod)
            phase = str((pod.get("status") or {}).get("phase") or "not started")
            state = f"{reason}: {said}" if reason else phase
            return f"Pod kube-system/{_name(pod)} should do it and is {state}: read its log"
    return "none is installed in kube-system: add one, or remove cloud-provider=external from the kubelets"


def _age(node: Mapping[str, Any], now: float) -> float:
    created = node["metadata"].get("creationTimestamp")
    return now - parse_time(str(created)) if created else float("inf")


def not_ready(facts: Facts) -> Iterator[Diagnosis]:
    """Nodes that are not ready for another reason, or under pressure."""
    for cluster, workload in facts.workloads.items():
        for node in workload.nodes:
            why = _not_ready(node)
            if why and not _NETWORK.search(why):
                cure = facts.commands.on_cluster(cluster.name, cluster.namespace, "describe", "node", _name(node))
                yield Diagnosis("NodeNotReady", "node", "Node", f"{cluster.name}/{_name(node)}", why, cure)


def pods(facts: Facts) -> Iterator[Diagnosis]:
    """Pods of kube-system that can't start."""
    for cluster, workload in facts.workloads.items():
        for pod in workload.pods:
            reason, text = _waiting(pod)
            if reason in _PULL or reason == "CrashLoopBackOff":
                cause = "ImagePullFailed" if reason in _PULL else "PodCrashes"
                cure = facts.commands.on_cluster(
                    cluster.name, cluster.namespace, "describe", "pod", "-n", "kube-system", _name(pod)
                )
                yield Diagnosis(cause, "addon", "Pod", f"kube-system/{_name(pod)}", f"{reason}: {text}", cure)


def _name(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"]["name"])


def _not_ready(node: Mapping[str, Any]) -> str:
    """Why; '' for a Node that is ready."""
    found = condition.find((node.get("status") or {}).get("conditions") or (), "Ready")
    if found is None or found.get("status") == "True":
        return ""
    return str(found.get("message") or found.get("reason") or "the Node is not ready")


def _taints(node: Mapping[str, Any]) -> set[str]:
    return {str(taint.get("key")) for taint in (node.get("spec") or {}).get("taints") or ()}


def _waiting(pod: Mapping[str, Any]) -> tuple[str, str]:
    for each in (pod.get("status") or {}).get("containerStatuses") or ():
        found = (each.get("state") or {}).get("waiting")
        if found:
            return str(found.get("reason") or ""), str(found.get("message") or "")
    return "", ""


def _several(names: list[str]) -> str:
    shown = ", ".join(names[:2])
    return f"Node {shown}" if len(names) <= 2 else f"Node {shown} and {len(names) - 2} more"


CHECKS = (unreachable, network_plugin, no_network_plugin_expected, cloud_controller, not_ready, pods)
