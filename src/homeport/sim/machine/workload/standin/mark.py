"""What is behind a Pod: a program, a stand-in, or nothing. The condition of this type on each Pod tells.

`kubectl get pods` shows Simulated instead of Running where nothing is behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.network.cni import brings_network
from homeport.sim.machine.workload.standin.image import runs

SIMULATED: Final = "sim.homeport.dev/Simulated"

NO_PROGRAM: Final = "NoProgram"
_NOTHING: Final = "No image runs in a simulated cluster: the containers only appear to run, and nothing listens"
SHOWN: Final[Json] = {"reason": "Simulated", "message": _NOTHING}  # of the status; its phase is what controllers read

# Add-ons with a stand-in.
ADD_ONS: Final = (
    "metallb/controller", "metallb-controller", "metallb/speaker", "metallb-speaker",
    "cert-manager-controller", "cert-manager-webhook", "cert-manager-cainjector",
    "ntnx-csi", "nutanix-csi", "harvester-csi-driver", "longhorn-manager",
    "metrics-server", "ingress-nginx/controller", "traefik", "tigera/operator", "kube-vip-cloud-provider",
)  # fmt: skip
# And the parts of Kubernetes itself: all images whose work is simulated.
KNOWN: Final = (
    *ADD_ONS,
    "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "coredns", "kube-vip",
)  # fmt: skip


def simulated_condition(pod: Json, has_program: Callable[[Json], bool], now: str) -> Json:
    """The condition that says what runs for the Pod's images."""
    if any(has_program(each) for each in pod["spec"]["containers"]):
        status, reason, message = "False", "Program", "A program runs for a container of this Pod"
    elif runs(pod, *KNOWN) or brings_network(pod):
        status, reason = "True", "StandIn"
        message = "No image runs in a simulated cluster: a stand-in does what users of this image see"
    else:
        status, reason, message = "True", NO_PROGRAM, _NOTHING
    return {"type": SIMULATED, "status": status, "reason": reason, "message": message, "lastTransitionTime": now}
