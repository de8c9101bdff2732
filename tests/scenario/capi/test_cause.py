"""Every Cluster that waits or fails says on itself, in one sentence, what for and on which object."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from capikit.harness import Harness, harness
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.client.protocol import Key
from homeport.runtime.testing import virtual
from scenario.capi.look import control_planes, message, run_pod, workers

Break = Callable[[Harness], Awaitable[list[str]]]  # what the sentence must have in it


def sentence(cluster: Cluster) -> str:
    """The first line is the cause; what follows is the summary of all conditions."""
    return message(cluster, "Available").split("\n")[0]


class Everything(set[str]):
    def __contains__(self, name: object) -> bool:
        return True


async def held_infrastructure(h: Harness) -> list[str]:
    h.infra.hold = Everything()
    await h.create("one", 1, 0)
    await h.plane.settle(quiet=60)
    (machine,) = await control_planes(h)
    return [f"control plane machine {machine.metadata.name}", "GenericMachine", "quota"]


async def image_that_does_not_boot(h: Harness) -> list[str]:
    h.infra.broken = True
    await h.create("one", 1, 0)
    await h.plane.settle(quiet=60)
    (machine,) = await control_planes(h)
    return [f"control plane machine {machine.metadata.name}", "can't be reached"]


async def worker_that_does_not_boot(h: Harness) -> list[str]:
    await h.create("one", 1, 1)
    await h.steady("one", 1, 1, "v1.30.0")
    h.infra.broken = True
    await h.patch(MachineDeployment, "one-md-0", {"spec": {"replicas": 2}})
    await h.plane.settle(quiet=60)
    (machine,) = [m for m in await workers(h) if m.status.node_ref is None]
    return [f"machine {machine.metadata.name}", "has not joined", machine.spec.provider_id or "?"]


async def missing_template(h: Harness) -> list[str]:
    from capikit import manifest

    objects = manifest.cluster_objects("one", 1, 0)
    await h.plane.have(*[each for each in objects if each["kind"] != "GenericMachineTemplate"])
    return ["KubeadmControlPlane one-cp", "GenericMachineTemplate one-cp", "not"]


async def missing_infrastructure(h: Harness) -> list[str]:
    from capikit import manifest

    objects = manifest.cluster_objects("one", 1, 0)
    await h.plane.have(*[each for each in objects if each["kind"] != "GenericCluster"])
    return ["GenericCluster one", "not exist"]


async def unreachable_cluster(h: Harness) -> list[str]:
    await h.create("one", 1, 1)
    await h.steady("one", 1, 1, "v1.30.0")
    for made in h.infra.machines.values():
        if made.control_plane:
            h.fleet.powered_off(made.uid, crashed=True)
    (machine,) = await control_planes(h)
    return [f"control plane machine {machine.metadata.name}", "can't be reached"]


async def blocked_drain(h: Harness) -> list[str]:
    await h.create("one", 1, 1)
    await h.steady("one", 1, 1, "v1.30.0")
    (worker,) = await workers(h)
    assert worker.status.node_ref is not None
    await run_pod(h, "precious", worker.status.node_ref.name, guarded=True)
    await h.delete(Machine, worker.metadata.name)
    return [f"machine {worker.metadata.name}", "Pod default/precious", "precious-budget"]


async def worker_newer_than_its_control_plane(h: Harness) -> list[str]:
    await h.create("one", 1, 1)
    await h.steady("one", 1, 1, "v1.30.0")
    await h.patch(
        MachineDeployment, "one-md-0", {"spec": {"replicas": 2, "template": {"spec": {"version": "v1.31.0"}}}}
    )
    return ["one-md-0", "v1.31.0", "v1.30.0"]


@pytest.mark.parametrize(
    "broken",
    [
        held_infrastructure,
        image_that_does_not_boot,
        worker_that_does_not_boot,
        missing_template,
        missing_infrastructure,
        unreachable_cluster,
        blocked_drain,
        worker_newer_than_its_control_plane,
    ],
    ids=lambda broken: broken.__name__.replace("_", " "),
)
def test_the_cluster_says_the_deepest_cause(broken: Break) -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            wanted = await broken(h)
            try:
                await h.until(Cluster, "one", lambda cluster: all(each in sentence(cluster) for each in wanted), 1800)
            except AssertionError:
                cluster = await h.client.get(Cluster, Key("default", "one"))
                raise AssertionError(f"{wanted} not in the first line of {message(cluster, 'Available')!r}") from None

    run()
