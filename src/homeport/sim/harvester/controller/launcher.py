"""The Pods in which VMs run: made, given a node by what they ask for, and started there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal

from homeport.machinery.quantity import parse_quantity
from homeport.sim.harvester.controller.template import claim_names
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import CLAIM, NODE, POD, VMI, Json
from homeport.sim.harvester.lease import POD_NETWORK
from homeport.sim.harvester.object import (
    condition,
    key_of,
    labels,
    leaving,
    owner_reference,
    status_of,
    with_condition,
)
from homeport.sim.harvester.occupancy import Occupancy
from homeport.sim.machine.workload.pod.load import Load
from homeport.sim.machine.workload.pod.scheduler import why_not

BY_INSTANCE = "instance"  # index of Pods: the UID of the instance that each is for
CREATED_BY = "kubevirt.io/created-by"
CONSOLE_LOG = "guest-console-log"  # the container whose log is the serial console of the VM
_IMAGE = "registry.suse.com/suse/sles/15.7/virt-launcher:1.7.0"
_OVERHEAD_BYTES = 220 * 1024**2  # what QEMU and libvirt take besides the guest's memory
_SECRET_SECONDS = 5.0
_FINAL = ("Succeeded", "Failed")


def is_launcher(pod: Json) -> bool:
    return labels(pod).get("kubevirt.io") == "virt-launcher"


class Launchers:
    def __init__(self, core: Core) -> None:
        self._core = core
        self.occupancy = Occupancy()
        self.waiting: set[str] = set()  # Pods that no node takes: room that becomes free is offered to them

    def of(self, vmi: Json) -> Json | None:
        """The Pod of an instance: of several, as during a migration, the one that lives on its node."""
        node = status_of(vmi).get("nodeName")

        def rank(pod: Json) -> tuple[bool, bool, bool]:
            over = status_of(pod).get("phase") in _FINAL
            return not over, not leaving(pod), pod["spec"].get("nodeName") == node

        return max(self._core.mirror.by(POD, BY_INSTANCE, vmi["metadata"]["uid"]), key=rank, default=None)

    async def create(self, vmi: Json, *, away: str = "", marks: Mapping[str, str] | None = None) -> None:
        """`away`: not on this node. `marks`: more labels."""
        pod = _pod(vmi, self._core.rng.randbytes(3).hex()[:5])
        pod["metadata"]["labels"].update(marks or {})
        if away:
            pod["spec"]["affinity"] = _away(pod["spec"].get("affinity") or {}, away)
        node, _ = self._choose(pod)
        if node:
            pod["spec"]["nodeName"] = node
            self.occupancy.take(str(key_of(pod)), node, pod)
        await self._core.create(pod, POD)
        if not self._core.pace.launch:
            await self.settle(str(key_of(pod)))  # where it takes no time, nobody sees the Pod start

    async def settle(self, key: str) -> float | None:
        pod = self._core.mirror.get(POD, key)
        if pod is None or not is_launcher(pod) or status_of(pod).get("phase") in _FINAL:
            self.waiting.discard(key)
            return None
        if leaving(pod):
            self.waiting.discard(key)
            return None  # its instance ends it
        if not pod["spec"].get("nodeName"):
            return await self._schedule(key, pod)
        self.waiting.discard(key)
        if condition(pod, "Ready").get("status") == "True":
            return None
        return await self._start(pod)

    async def _schedule(self, key: str, pod: Json) -> float | None:
        node, why = self._choose(pod)
        if node:
            self.occupancy.take(key, node, pod)
            body = {"metadata": {"name": pod["metadata"]["name"]}, "target": {"kind": "Node", "name": node}}
            await self._core.client.create(body, kind=POD, key=key_of(pod), subresource="binding")
            return 0.0
        self.waiting.add(key)
        before = condition(pod, "PodScheduled")
        if before.get("message") != why:
            conditions = with_condition(
                status_of(pod).get("conditions") or (),
                self._core.stamp,
                "PodScheduled",
                "False",
                reason="Unschedulable",
                message=why,
            )
            await self._core.patch(POD, pod, {"status": {"phase": "Pending", "conditions": conditions}}, "status")
        return None

    def _choose(self, pod: Json) -> tuple[str, str]:
        """The node with the least asked of it among those that take it; or '' and why there is none."""
        core = self._core
        nodes = core.mirror.all(NODE)
        unbound = [name for name in _claims_of(pod) if not self._bound(pod, name)]
        if unbound:
            return "", f"0/{len(nodes)} nodes are available: pod has unbound immediate PersistentVolumeClaims."
        loads = {node["metadata"]["name"]: self.occupancy.load(node) for node in nodes}
        refused = {name: _why_not(pod, node, loads[name]) for node in nodes if (name := node["metadata"]["name"])}
        fitting = [name for name, why in refused.items() if not why]
        if fitting:
            return min(fitting, key=lambda name: (loads[name].taken.get("memory", 0), name)), ""
        return "", _counted(refused.values(), len(nodes))

    def _bound(self, pod: Json, name: str) -> bool:
        claim = self._core.mirror.get(CLAIM, f"{pod['metadata']['namespace']}/{name}")
        return claim is not None and status_of(claim).get("phase") == "Bound"

    async def _start(self, pod: Json) -> float | None:
        core = self._core
        wait = core.seconds_until(pod["metadata"]["creationTimestamp"], core.pace.launch)
        if wait > 0:
            return wait
        for name in _secrets_of(pod):
            if await core.secret(pod["metadata"]["namespace"], name) is None:
                text = f'MountVolume.SetUp failed for volume "cloud-init" : secret "{name}" not found'
                core.tell(pod, POD, "FailedMount", text, warning=True)
                return _SECRET_SECONDS
        await core.patch(POD, pod, {"status": self._running(pod)}, "status")
        return None

    def _running(self, pod: Json) -> Json:
        core, now = self._core, self._core.stamp
        address = core.leases.take(POD_NETWORK, f"pod {pod['metadata']['uid']}")
        node = core.mirror.get(NODE, pod["spec"]["nodeName"]) or {}
        host = next(
            (each["address"] for each in status_of(node).get("addresses") or () if each["type"] == "InternalIP"),
            "",
        )
        conditions: list[Json] = []
        for name in ("PodScheduled", "Initialized", "ContainersReady", "Ready"):
            conditions = with_condition(conditions, now, name, "True")
        state = {"running": {"startedAt": now}}
        compute = pod["spec"]["containers"][0]
        return {
            "phase": "Running",
            "startTime": now,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": host,
            "qosClass": "Burstable",
            "conditions": conditions,
            "containerStatuses": [
                {
                    "name": compute["name"],
                    "image": compute["image"],
                    "imageID": "",
                    "ready": True,
                    "started": True,
                    "restartCount": 0,
                    "state": state,
                }
            ],
        }


def _why_not(pod: Json, node: Json, load: Load) -> str:
    ready = next((each for each in status_of(node).get("conditions") or () if each["type"] == "Ready"), None)
    if ready is not None and ready["status"] != "True":
        return "node(s) were not ready"
    return why_not(pod, node, load)


def _counted(refused: Iterable[str], nodes: int) -> str:
    counted = sorted(f"{count} {why}" for why, count in Counter(refused).items())
    text = f"0/{nodes} nodes are available"
    return f"{text}: {', '.join(counted)}." if counted else f"{text}."


def _claims_of(pod: Json) -> list[str]:
    return [
        each["persistentVolumeClaim"]["claimName"]
        for each in pod["spec"].get("volumes") or ()
        if "persistentVolumeClaim" in each
    ]


def _secrets_of(pod: Json) -> list[str]:
    return [each["secret"]["secretName"] for each in pod["spec"].get("volumes") or () if "secret" in each]


def _pod(vmi: Json, suffix: str) -> Json:
    meta, spec = vmi["metadata"], vmi["spec"]
    name = meta["name"][:57].rstrip("-.")
    made: Json = {
        "containers": [
            {
                "name": "compute",
                "image": _IMAGE,
                "resources": {"requests": requests(vmi), "limits": {"devices.kubevirt.io/kvm": "1"}},
            },
            *([{"name": CONSOLE_LOG, "image": _IMAGE}] if _keeps_console(vmi) else ()),
        ],
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": int(spec.get("terminationGracePeriodSeconds", 30)) + 30,
        "volumes": _volumes(vmi),
        "nodeSelector": {**(spec.get("nodeSelector") or {}), "kubevirt.io/schedulable": "true"},
    }
    for field in ("affinity", "tolerations", "schedulerName", "priorityClassName"):
        if spec.get(field):
            made[field] = spec[field]
    return {
        "metadata": {
            "name": f"virt-launcher-{name}-{suffix}",
            "namespace": meta["namespace"],
            "labels": {
                **labels(vmi),
                "kubevirt.io": "virt-launcher",
                CREATED_BY: meta["uid"],
                "vm.kubevirt.io/name": meta["name"],
            },
            "annotations": {"kubevirt.io/domain": meta["name"]},
            "ownerReferences": [owner_reference(vmi, VMI)],
        },
        "spec": made,
    }


def _keeps_console(vmi: Json) -> bool:
    """As KubeVirt decides it where the administrator has not turned it off."""
    devices = vmi["spec"]["domain"].get("devices") or {}
    return bool(devices.get("autoattachSerialConsole", True) and devices.get("logSerialConsole", True))


def _away(affinity: Json, node: str) -> Json:
    """Not on this node, besides what is asked for anyway."""
    rule = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [node]}
    by_node = affinity.get("nodeAffinity") or {}
    required = by_node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), rule]}
        for term in required.get("nodeSelectorTerms") or [{}]
    ]
    held = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {**affinity, "nodeAffinity": {**by_node, **held}}


def requests(vmi: Json) -> dict[str, str]:
    """CPU and memory that an instance takes from its node."""
    domain = vmi["spec"]["domain"]
    asked = (domain.get("resources") or {}).get("requests") or {}
    cpu = domain.get("cpu") or {}
    cores = int(cpu.get("cores", 1)) * int(cpu.get("sockets", 1)) * int(cpu.get("threads", 1))
    # KubeVirt gives every vCPU a tenth of a core if nothing is asked for.
    wanted = asked.get("cpu") or f"{cores * 100}m"
    memory = asked.get("memory") or (domain.get("memory") or {}).get("guest") or "512Mi"
    amount = parse_quantity(str(memory)).amount + Decimal(_OVERHEAD_BYTES)
    return {"cpu": str(wanted), "memory": str(int(amount))}


def _volumes(vmi: Json) -> list[Json]:
    found: list[Json] = [
        {"name": f"claim-{number}", "persistentVolumeClaim": {"claimName": name}}
        for number, name in enumerate(claim_names(vmi))
    ]
    for number, name in enumerate(sorted(set(_secret_names(vmi)))):
        found.append({"name": f"cloud-init-{number}", "secret": {"secretName": name}})
    return found


def _secret_names(vmi: Json) -> Iterable[str]:
    for volume in vmi["spec"].get("volumes") or ():
        for kind in ("cloudInitNoCloud", "cloudInitConfigDrive"):
            source = volume.get(kind) or {}
            for field in ("secretRef", "networkDataSecretRef"):
                if name := (source.get(field) or {}).get("name"):
                    yield str(name)
