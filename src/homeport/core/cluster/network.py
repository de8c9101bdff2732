"""Whether the Nodes of a cluster wait for a network plugin. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.capi.name import Condition, Reason
from homeport.core.verdict import Verdict
from homeport.machinery import condition
from homeport.runtime.clock import parse_time

PATIENCE_SECONDS = 20.0  # an add-on that is just being installed gets there earlier
_WAITS = re.compile(r"cni plugin not initialized|NetworkPluginNotReady|cni config uninitialized", re.I)
_SHOWN = 2


def network_plugin(cluster: Cluster, machines: Sequence[Machine], now: float) -> tuple[Verdict | None, float]:
    """None: nothing is known to be wrong. Then the seconds after which that may change (0: never by itself)."""
    found = [condition.find(each.status.conditions, Condition.NODE_READY) for each in machines]
    known = [each for each in found if each is not None]
    waiting = [
        (machine, said)
        for machine, said in zip(machines, found, strict=True)
        if said is not None and said["status"] == "False" and _WAITS.search(str(said.get("message") or ""))
    ]
    if not waiting or any(each["status"] == "True" for each in known):
        return None, 0.0
    early = PATIENCE_SECONDS - (now - min(parse_time(said["lastTransitionTime"]) for _, said in waiting))
    if early > 0:
        return None, early
    return Verdict("False", Reason.NO_NETWORK_PLUGIN, _text(cluster, [machine for machine, _ in waiting])), 0.0


def _text(cluster: Cluster, machines: Sequence[Machine]) -> str:
    names = [each.status.node_ref.name if each.status.node_ref else each.metadata.name for each in machines]
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    name, namespace = cluster.metadata.name, cluster.metadata.namespace
    return (
        f"no network plugin (CNI) works: {shown} can't run Pods. Create a ClusterAddon in namespace {namespace} with "
        f"clusterName {name} and addon cilium, calico or flannel, or apply a manifest of your own: "
        f"homeport kubeconfig {name} -n {namespace} > {name}.kubeconfig && "
        f"kubectl --kubeconfig {name}.kubeconfig apply -f CNI.yaml"
    )
