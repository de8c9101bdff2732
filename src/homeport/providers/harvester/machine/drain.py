"""Evictions of VMs whose strategy is External, for example for the maintenance of a host.

KubeVirt leaves such a VM running and notes from which host it has to go. Its Node is cordoned and drained first, then
the instance is deleted: KubeVirt starts it on another host, and the Node is uncordoned.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.capi.remote.workload import NODE, Remote
from homeport.client.errors import ApiError, Forbidden, NotFound, TooManyRequests
from homeport.client.protocol import Key, MergePatch, Query, Write
from homeport.providers.harvester.cloud.node import Nodes
from homeport.providers.harvester.infracluster.resource import VMI
from homeport.providers.harvester.machine.observation import Machine
from homeport.providers.harvester.machine.plan import Scope
from homeport.runtime.cache import deleting, key_of
from homeport.runtime.clock import Clock, parse_time, rfc3339
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

# As upstream spells them: on the instance, when it goes whether or not its Node is drained; on the Node, that we
# cordoned it.
DEADLINE = "capk.cluster.x-k8s.io/vmi-deletion-grace-time"
CORDONED = "capk.cluster.x-k8s.io/node-cordoned"
GRACE_SECONDS = 600.0
_AGAIN_SECONDS = 5.0
_MIRROR = "kubernetes.io/config.mirror"
_POD = Resource("", "v1", "Pod", "pods")
_WRITE = Write(field_manager="homeport-harvester")


class Drain:
    def __init__(self, clock: Clock, nodes: Nodes) -> None:
        self._clock = clock
        self._nodes = nodes

    async def converge(self, scope: Scope, machine: Machine) -> Wait | None:
        vmi = machine.vmi
        if vmi is None or not _is_evicted(vmi) or deleting(vmi):
            await self._uncordon(scope)
            return None
        deadline = await self._deadline(scope, vmi)
        left = await self._drain(scope) if self._clock.now() < deadline else []
        if left:
            shown = ", ".join(left[:3])
            until = rfc3339(deadline)
            text = f"Node {scope.name} is drained because its host is to be emptied: {shown} remaining (until {until})"
            return Wait("DrainingNode", text, after=_AGAIN_SECONDS)
        log.info("deleting an instance, so that its VM starts on another host", vm=vmi.name)
        await scope.session.delete(VMI, vmi)
        text = f"VM {vmi.namespace}/{vmi.name} restarts on another host"
        return Wait("Restarting", text, after=_AGAIN_SECONDS)

    async def _deadline(self, scope: Scope, vmi: Unstructured) -> float:
        """Kept on the instance: it is the same after a restart of this process, and gone with the instance."""
        known = (vmi.metadata.get("annotations") or {}).get(DEADLINE)
        if known:
            return parse_time(str(known))
        deadline = self._clock.now() + GRACE_SECONDS
        body = {"metadata": {"uid": vmi.uid, "annotations": {DEADLINE: rfc3339(deadline)}}}
        await scope.session.patch(VMI, key_of(vmi), body)
        return deadline

    async def _drain(self, scope: Scope) -> Sequence[str]:
        """Cordons and evicts; what is still there. Nothing, if there is no Node to drain."""
        node, remote = self._nodes.find(scope), self._nodes.remote(scope)
        if node is None or remote is None:
            return []
        try:
            if not (node.get("spec") or {}).get("unschedulable"):
                await _cordon(remote, node, True)
            pods = (await remote.client.list(_POD, Query(fields=f"spec.nodeName={node.name}"))).items
            left = [each for each in pods if not _stays(each)]
            for pod in left:
                if not deleting(pod):
                    await _evict(remote, pod)
        except ApiError as error:
            return [f"the workload cluster does not answer ({error.message})"]
        return [f"Pod {key_of(each)}" for each in left]

    async def _uncordon(self, scope: Scope) -> None:
        node, remote = self._nodes.find(scope), self._nodes.remote(scope)
        if node is None or remote is None or CORDONED not in (node.metadata.get("annotations") or {}):
            return
        try:
            await _cordon(remote, node, False)
        except ApiError as error:
            log.info("a Node could not be uncordoned yet", node=node.name, error=error.message)


def _is_evicted(vmi: Unstructured) -> bool:
    external = (vmi.get("spec") or {}).get("evictionStrategy") == "External"
    return external and bool((vmi.get("status") or {}).get("evacuationNodeName"))


def _stays(pod: Unstructured) -> bool:
    """Pods that come back to the same Node at once, and those that have ended."""
    daemon = any(each.get("kind") == "DaemonSet" for each in pod.metadata.get("ownerReferences") or ())
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return daemon or ended or _MIRROR in (pod.metadata.get("annotations") or {})


async def _cordon(remote: Remote, node: Unstructured, value: bool) -> None:
    body = {
        "metadata": {"uid": node.uid, "annotations": {CORDONED: "true" if value else None}},
        "spec": {"unschedulable": True if value else None},
    }
    await remote.client.patch(NODE, Key("", node.name), MergePatch(body), _WRITE)


async def _evict(remote: Remote, pod: Unstructured) -> None:
    """A Pod that may not go yet, because of a PodDisruptionBudget, is asked again."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
    }
    try:
        await remote.client.create(body, _WRITE, kind=_POD, key=key_of(pod), subresource="eviction")
    except (NotFound, TooManyRequests, Forbidden) as error:
        log.debug("a Pod was not evicted", pod=str(key_of(pod)), error=error.message)
