"""The five troubles of the guide, made on purpose: the ClusterDeployment itself reports cause and cure, not only a symptom.

All clusters are made at once, so that the test waits once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from homeport.api.cluster.v1beta2 import Machine
from homeport.client.protocol import Key
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import Isolation, NoBoot
from scenario.k0rdent.stage import SPACE, Stage, credential, deployments, hosted, secret, standalone

JOIN = "running for more than 10 minutes without joining the cluster. Look at the console of the VM"


@dataclass(frozen=True)
class Cause:
    words: tuple[str, ...]
    machine: dict[str, Any] | None = None  # of machineDefaults
    lacks: tuple[Any, ...] = ()
    boots: bool = True
    hosted: bool = True
    host: str = ""


CAUSES = {
    # 1. The address of the control plane
    "dhcp": Cause(("10.1.2.70 is in the pool 10.1.2.1-10.1.15.250 of subnet 'VM-Network'",), host="10.1.2.70"),
    # 2. VMs
    "cluster": Cause(
        ("cluster 'PE-Cluster-1' not found on Prism Central 10.1.1.100:9440; did you mean 'PE-Cluster-01'",),
        {"cluster": {"type": "name", "name": "PE-Cluster-1"}},
    ),
    "subnet": Cause(
        ("subnet 'VM-Net' not found on cluster 'PE-Cluster-01'", "did you mean 'VM-Network'"),
        {"subnets": [{"type": "name", "name": "VM-Net"}]},
    ),
    "memory": Cause(("GiB of free memory, but the machines of this cluster need 4000 GiB",), {"memorySize": "4000Gi"}),
    # 3. Images
    "iso": Cause(
        ("'ubuntu-22.04-server-iso' is an ISO installer image: a disk image (type DISK) is required",),
        {"image": {"type": "name", "name": "ubuntu-22.04-server-iso"}},
    ),
    "no-boot": Cause((JOIN, "its image has cloud-init and curl"), boots=False),
    # 4. The network of machines
    "internet": Cause((JOIN, "can download https://get.k0s.sh"), lacks=("internet",)),
    "dns": Cause((JOIN, "it resolves names"), lacks=("dns",), hosted=False),
    "registry": Cause(
        ("can't pull quay.io/k0sproject/", "i/o timeout", "or name a mirror in spec.config.k0s.config.spec.images"),
        lacks=("registry",),
    ),
}


def body(name: str, cause: Cause, number: int) -> dict[str, Any]:
    host = cause.host or f"10.1.1.{101 + number}"
    make = hosted if cause.hosted else standalone
    made = make(name, host, workersNumber=1, csi={"enabled": False}, worker={})
    if not cause.hosted:
        made["spec"]["config"]["controlPlaneNumber"] = 1
    made["spec"]["config"]["machineDefaults"].update(cause.machine or {})
    return made


def strike(stage: Stage, name: str, cause: Cause) -> None:
    if cause.lacks:
        stage.site.fault(Isolation(lacks=cause.lacks), name=name, kind="vm", entity=f"{name}-*")
    if not cause.boots:
        stage.site.fault(NoBoot(), name=name, kind="vm", entity=f"{name}-*")


@virtual
async def test_each_trouble_of_the_guide_is_reported_with_its_cause_on_the_cluster_deployment() -> None:
    async with deployments() as stage:
        for name, cause in CAUSES.items():
            strike(stage, name, cause)
        bodies = [body(name, cause, number) for number, (name, cause) in enumerate(CAUSES.items())]
        await stage.have(secret(), credential(), *bodies)
        for name, cause in CAUSES.items():
            said = await stage.says(name, *cause.words, timeout=1200)
            assert said.count("has not joined yet") <= 1, said
        assert not [name for name in stage.vms() if name.startswith(("dhcp", "cluster", "subnet", "memory", "iso"))]


@virtual
async def test_a_machine_that_can_not_join_recovers_when_its_network_does() -> None:
    """k0s is fetched once, when the machine boots: the cure is another machine."""
    async with deployments() as stage:
        stage.site.fault(Isolation(lacks=("internet",)), name="internet", kind="vm", entity="*")
        await stage.have(secret(), credential(), body("one", CAUSES["internet"], 0))
        await stage.says("one", JOIN, "it reaches 10.1.1.101 on ports 6443 and 8132", timeout=1200)
        stage.site.clear_faults()
        (machine,) = await stage.machines("one")
        await stage.client.delete(Machine, Key(SPACE, machine.metadata.name))
        await stage.ready("one")
