"""Which Pods bring a network for Pods to their node.

None is known by its name: kindnet, Calico, Cilium and Flannel all write a network configuration into /etc/cni/net.d of
their host, where the container runtime looks for it, and all ask the API server what to write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from homeport.sim.machine.workload.kind import Json

# /etc/cni/net.d, or a directory that it is in.
_DIRECTORIES = frozenset({"/etc/cni/net.d", "/etc/cni", "/etc", ""})
# These write there, too, but only add to a network that another has brought.
_ADDITIONS = ("multus", "istio/install-cni", "linkerd/cni-plugin")
# These variables give the API server's address to a Pod that can't rely on kube-proxy.
_ADDRESSES = frozenset({"KUBERNETES_SERVICE_HOST", "CONTROL_PLANE_ENDPOINT"})


def bringer(pods: Iterable[Json], node: str) -> str:
    """The Pod that has brought a network to this node, by its name; '' if none has."""
    running = [
        pod
        for pod in pods
        if pod["spec"].get("nodeName") == node and (pod.get("status") or {}).get("phase") == "Running"
    ]
    proxied = any((pod["metadata"].get("labels") or {}).get("k8s-app") == "kube-proxy" for pod in running)
    found = (pod for pod in running if brings_network(pod) and (proxied or finds_api(pod)))
    return next((f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}" for pod in found), "")


def brings_network(pod: Json) -> bool:
    """Whether it writes the configuration of a network. It needs its host's: Pods have none yet."""
    spec = pod["spec"]
    if not spec.get("hostNetwork") or any(_only_adds(each) for each in _containers(spec)):
        return False
    places = {each["name"] for each in spec.get("volumes") or () if _is_configuration(each)}
    mounts = [mount for each in _containers(spec) for mount in each.get("volumeMounts") or ()]
    return any(mount["name"] in places and not mount.get("readOnly") for mount in mounts)


def finds_api(pod: Json) -> bool:
    """Without kube-proxy the address of the Service `kubernetes` does not work: the CNI needs another one."""
    variables = (each for container in _containers(pod["spec"]) for each in container.get("env") or ())
    return any(each["name"] in _ADDRESSES and (each.get("value") or each.get("valueFrom")) for each in variables)


def _containers(spec: Json) -> Iterator[Json]:
    yield from spec.get("initContainers") or ()
    yield from spec["containers"]


def _only_adds(container: Json) -> bool:
    return any(each in str(container.get("image") or "") for each in _ADDITIONS)


def _is_configuration(volume: Json) -> bool:
    path = (volume.get("hostPath") or {}).get("path")
    return path is not None and str(path).rstrip("/") in _DIRECTORIES
