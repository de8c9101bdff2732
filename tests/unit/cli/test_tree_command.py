"""homeport tree and homeport describe cluster, over the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.definition.kind import definitions
from homeport.cli.main import group
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import Plane, plane

API = "cluster.x-k8s.io/v1beta2"
SINCE = "2026-01-01T00:00:00Z"


def status(kind: str, good: bool, message: str = "", **more: Any) -> dict[str, Any]:
    found = {"type": kind, "status": str(good), "reason": "Broken" if not good else kind, "message": message}
    return {"conditions": [{**found, "lastTransitionTime": SINCE}], **more}


def machine(name: str, owner: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "SomeMachine", "name": name}
    spec = {
        "clusterName": "harbour",
        "version": "v1.33.1",
        "bootstrap": {"dataSecretName": "s"},
        "infrastructureRef": ref,
    }
    meta = {"name": name, "ownerReferences": [owner], "labels": {"cluster.x-k8s.io/cluster-name": "harbour"}}
    return {"apiVersion": API, "kind": "Machine", "metadata": meta, "spec": spec, "status": state}


def owner(obj: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": obj["kind"], "name": obj.name, "uid": obj.uid, "controller": True}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Plane, Path]]:
    """A cluster of two workers; the second one can't be created."""
    async with plane(crds=definitions(), serve=True) as p:
        ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "SomeCluster", "name": "harbour"}
        cluster = {"apiVersion": API, "kind": "Cluster", "metadata": {"name": "harbour"}}
        bad = status("Available", False, "* MachineDeployment workers: not all are available")
        [made] = await p.have({**cluster, "spec": {"infrastructureRef": ref}, "status": bad})
        spec = {
            "clusterName": "harbour",
            "replicas": 2,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"spec": machine("x", {}, {})["spec"], "metadata": {"labels": {"a": "b"}}},
        }
        meta = {"name": "workers", "ownerReferences": [owner(made)]}
        waits = status("Available", False, readyReplicas=1)
        waits["conditions"][0]["reason"] = "NotAvailable"
        body = {"apiVersion": API, "metadata": meta, "spec": spec}
        [workers] = await p.have({**body, "kind": "MachineDeployment", "status": waits})
        meta = {"name": "workers-abc", "ownerReferences": [owner(workers)]}
        [sets] = await p.have({**body, "kind": "MachineSet", "metadata": meta})
        good = status("Ready", True, nodeRef={"name": "node-1"})
        good["conditions"].append({**good["conditions"][0], "type": "NodeReady"})
        await p.have(
            machine("one", owner(sets), good),
            machine("two", owner(sets), status("InfrastructureReady", False, "SomeMachine two: the disk is full")),
        )
        path = tmp_path / "kubeconfig"
        path.write_text(p.server.pki.kubeconfig(p.server.url))
        yield p, path


async def run(path: Path, *args: str) -> Result:
    """In a thread of its own: the server needs the event loop."""
    return await asyncio.to_thread(CliRunner().invoke, group, [*args, "--kubeconfig", str(path)])


async def test_the_tree_leads_from_the_cluster_to_its_nodes_and_skips_single_machine_sets(
    served: tuple[Plane, Path],
) -> None:
    result = await run(served[1], "tree", "harbour")
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()[:3]) for line in result.output.splitlines()]
    assert lines[0] == "OBJECT STATE READY"
    texts = result.output.splitlines()
    order = [next(i for i, line in enumerate(texts) if name in line) for name in _NAMES]
    assert order == sorted(order)
    assert "workers-abc" not in result.output
    assert "1 of 2" in result.output


_NAMES = ("Cluster/harbour", "MachineDeployment/workers", "Machine/one", "Node/node-1", "Machine/two", "disk is full")


async def test_everything_shows_machine_sets_and_conditions_shows_all_conditions(served: tuple[Plane, Path]) -> None:
    result = await run(served[1], "tree", "--all", "--conditions")
    assert "MachineSet/workers-abc" in result.output
    assert "NodeReady=True Ready" in result.output


async def test_describe_names_the_deepest_cause_and_counts_machines(served: tuple[Plane, Path]) -> None:
    result = await run(served[1], "describe", "cluster", "harbour")
    assert result.exit_code == 0, result.output
    assert "Cluster harbour in namespace default" in result.output
    assert "Machines:  1 of 2 ready" in result.output
    assert "machine two: SomeMachine two: the disk is full" in result.output.split("OBJECT")[0]


async def test_describe_and_tree_take_the_name_alone_or_behind_the_word_cluster(served: tuple[Plane, Path]) -> None:
    for verb in ("describe", "tree"):
        for words in (("harbour",), ("cluster", "harbour"), ("cluster/harbour",)):
            found = await run(served[1], verb, *words, "-o", "name")
            assert found.exit_code == 0, found.output
            assert found.output.startswith("cluster/harbour\n")
        wrong = await run(served[1], verb, "machine", "harbour")
        assert wrong.exit_code == 2
        assert "expected 'cluster NAME', not 'machine harbour'" in wrong.output


async def test_json_has_the_tree_with_conditions(served: tuple[Plane, Path]) -> None:
    result = await run(served[1], "describe", "cluster", "harbour", "-o", "json")
    found = json.loads(result.output)
    assert found["root"]["kind"] == "Cluster"
    assert found["cause"].endswith("the disk is full")
    [workers] = found["root"]["children"]
    assert (workers["role"], workers["kind"]) == ("Workers", "MachineDeployment")
    assert [each["name"] for each in workers["children"]] == ["one", "two"]
    assert found["root"]["conditions"][0]["type"] == "Available"


async def test_a_mistyped_name_is_answered_with_the_nearest_and_another_namespace_is_named(
    served: tuple[Plane, Path],
) -> None:
    result = await run(served[1], "describe", "cluster", "harbur")
    assert result.exit_code == 1
    assert "did you mean 'harbour'?" in result.output
    result = await run(served[1], "describe", "cluster", "harbour", "-n", "kube-system")
    assert "there is one in namespace default, use -n" in result.output


def test_help_names_the_three_apis_and_watch_excludes_output() -> None:
    result = CliRunner().invoke(group, ["describe", "cluster", "--help"])
    assert "NAME is a Cluster, a TenantCluster or a ClusterDeployment" in " ".join(result.output.split())
    result = CliRunner().invoke(group, ["tree", "x", "--watch", "-o", "json"])
    assert result.exit_code == 2
    assert "use either --watch or -o json" in result.output


async def test_describe_says_that_a_cluster_is_paused(served: tuple[Plane, Path]) -> None:
    p, path = served
    paused = [{**status(kind, good)["conditions"][0]} for kind, good in (("Available", True), ("Paused", True))]
    change = MergePatch({"status": {"conditions": paused}})
    await p.client.patch(Cluster.__resource__, Key("default", "harbour"), change, subresource="status")
    result = await run(path, "describe", "cluster", "harbour")
    assert "State:     Available, paused\n" in result.output
