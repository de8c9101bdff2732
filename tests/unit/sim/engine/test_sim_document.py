"""Files that can't be used are refused with file, line and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.sim.engine.document import DocumentError
from homeport.sim.engine.fault import load_faults, parse_faults
from homeport.sim.prism.world import World, default_world, load_world, parse_world


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("clusters: 3", "w.yaml:1: clusters: expected `array`, got `int`"),
        ("clusters:\n- name: a\n  hots: []", "w.yaml:3: clusters[0].hots: object contains unknown field `hots`"),
        (
            "subnets:\n- name: x\n  clusters: [nope]",
            "w.yaml:3: subnets[0].clusters: no entry of clusters is called 'nope'",
        ),
        ("subnets:\n- name: x\n  pools: [10.0.0.9-10.0.0.1]", "w.yaml:2: subnets[0]: the range '10.0.0.9-10.0.0.1'"),
        ("clusters:\n- name: a\n   b: c", "w.yaml:3: "),
        ("clusters:\n- name: a\n- name: a\n", "w.yaml:3: clusters[1]: the id "),
        ("vms:\n- {name: v, cluster: c, power: ON}", "w.yaml:2: vms[0].power: expected `str`, got `bool` (quote it"),
        ("images:\n- {name: i, type: FLOPPY}", "w.yaml:2: images[0].type: invalid enum value 'FLOPPY'"),
    ],
)
def test_a_broken_world_is_refused_with_line_and_field(text: str, told: str) -> None:
    with pytest.raises(DocumentError) as refused:
        parse_world(text, "w.yaml")
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("faults:\n- effect: {kind: explode}", "f.yaml:2: faults[0].effect.kind: invalid value 'explode'"),
        ("faults:\n- effect:\n    kind: status\n    status: 200", "f.yaml:2: faults[0].effect: status is an error"),
        ("faults:\n- match: {share: 2}\n  effect: {kind: no-boot}", "f.yaml:2: faults[0].match: share is"),
        ("faults:\n- match: {nth: x}\n  effect: {kind: no-boot}", "f.yaml:2: faults[0].match.nth: expected"),
        ("faults:\n- match: {}", "f.yaml:2: faults[0]: object missing required field `effect`"),
    ],
)
def test_a_broken_fault_file_is_refused_with_line_and_field(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as refused:
        parse_faults(text, "f.yaml")
    assert str(refused.value).startswith(told)
    path = tmp_path / "f.yaml"
    path.write_text(text)
    with pytest.raises(DocumentError, match=str(path)):
        load_faults(path)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(DocumentError, match=r"/nowhere/w\.yaml: can't be read"):
        load_world(Path("/nowhere/w.yaml"))


def test_a_saved_world_is_read_back_the_same() -> None:
    world = World(default_world())
    assert parse_world(world.save()) == world.snapshot()


def test_the_built_in_world_has_every_name_that_the_guides_use() -> None:
    world = default_world()
    named = {each.name for table in (world.clusters, world.subnets, world.images, world.projects) for each in table}
    assert named >= {
        "cluster-01", "nutanix-cluster-1", "PE-Cluster-01", "workload-subnet", "vm-network", "vm-network-1",
        "VM-Network", "Primary-Network", "Storage-Network", "talos-1.9", "rocky-9-cloud", "ubuntu-22.04-k0s",
        "ubuntu-22.04-kube-v1.28.0", "kubernetes-project", "k0s-project", "k0s-production",
    }  # fmt: skip
    pairs = {(each.key, each.value) for each in world.categories}
    assert pairs >= {("Environment", "Production"), ("Application", "Kubernetes"), ("workload", "k0s")}
