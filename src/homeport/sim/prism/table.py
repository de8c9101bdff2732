"""The world of a simulated Prism Central as tables for people."""

from __future__ import annotations

from collections.abc import Iterable

from homeport.sim.engine.bench import Table
from homeport.sim.prism import entity as e
from homeport.sim.prism.prism import Prism

_GIB = 1024**3
_MOST_TASKS = 200


def tables(prism: Prism) -> list[Table]:
    prism.settle()
    world = prism.world
    named = {each.ext_id: each.name for each in world.clusters}
    return [
        Table("Clusters", ("Name", "Hosts", "AOS"), [_cluster(each) for each in world.clusters]),
        Table(
            "Subnets",
            ("Name", "Type", "Range", "Pools", "Clusters"),
            [
                (each.name, _type(each), each.cidr, ", ".join(each.pools), _names(each.clusters, named))
                for each in world.subnets
            ],
        ),
        Table(
            "Images",
            ("Name", "Type", "Size"),
            [(each.name, each.type, f"{each.size_bytes / _GIB:.0f} GiB") for each in world.images],
        ),
        Table(
            "Tasks",
            ("Operation", "Status", "About", "Failure"),
            [_task(each) for each in list(world.tasks)[: -_MOST_TASKS - 1 : -1]],
        ),
    ]


def _cluster(cluster: e.Cluster) -> tuple[str, ...]:
    central = " (Prism Central)" if cluster.central else ""
    return f"{cluster.name}{central}", str(len(cluster.hosts)), cluster.version_aos


def _type(subnet: e.Subnet) -> str:
    return f"VLAN {subnet.vlan}" if subnet.type == "VLAN" else subnet.type


def _names(clusters: Iterable[str], named: dict[str, str]) -> str:
    return ", ".join(named.get(each, each) for each in clusters)


def _task(task: e.Task) -> tuple[str, ...]:
    about = ", ".join(each.name or each.ext_id for each in task.affected)
    failure = task.failure.message if task.failure is not None and task.status == "FAILED" else ""
    return task.operation, task.status, about, failure
