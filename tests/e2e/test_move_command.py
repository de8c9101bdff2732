"""`homeport move` as a user runs it: between planes, to a real kube-apiserver, through files, and on with clusterctl."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e import test_clusterctl
from e2e.test_clusterctl import FLEET, KINDS, Plane, Site, real, running

pytestmark = [pytest.mark.timeout(420)]

OWN = {"configmap/kube-root-ca.crt"}
program = test_clusterctl.program
plane = test_clusterctl.plane


def homeport(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "homeport", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def move(source: Path, target: Path, *options: str) -> str:
    done = homeport("move", "--from", str(source), "--to", str(target), "-n", FLEET, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def kill_at(line: str, source: Path, target: Path) -> None:
    """Starts a move and kills it as soon as it prints the line."""
    command = [sys.executable, "-u", "-m", "homeport", "move", "--from", str(source), "--to", str(target), "-n", FLEET]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        said = []
        for each in process.stdout:
            said.append(each)
            if each.startswith(line):
                return
        raise AssertionError(f"it never printed {line!r}: {''.join(said)}")
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def fleet(plane: Plane) -> Plane:
    """With a cluster that has everything that could be left behind, and one that is made from a class."""
    authority = Path(plane.way()[-1]).read_text()
    objects: list[dict[str, Any]] = [*test_clusterctl._fleet(authority), *test_clusterctl._by_class()]
    plane.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    plane.settled("two", 1)
    plane.wait("--for=condition=Available", "cluster/three")
    plane.wait("--for=create", "clusterresourcesetbinding/two")
    return plane


@pytest.fixture(scope="module")
def other(fleet: Plane, kubectl: str, program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with running(tmp_path_factory.mktemp("other") / "data", kubectl, program, *fleet.way()) as made:
        yield made


def arrived(site: Site, before: set[str]) -> None:
    assert site.names(KINDS) - OWN == before
    site.settled("two", 1)
    site.wait("--for=condition=Ready", "nutanixmachines", "--all")
    site.wait("--for=condition=TopologyReconciled", "cluster/three")
    marked = "jsonpath={.items[*].metadata.annotations.move\\.homeport\\.dev/copy-of}"
    assert site.kubectl.ok("get", "cluster-api,secrets,configmaps", "-n", FLEET, "-o", marked) == ""


def test_clusters_move_through_planes_files_and_a_real_kubernetes_and_their_machines_do_not_notice(
    fleet: Plane, other: Plane, program: Path, binaries: dict[str, Path] | str, tmp_path: Path
) -> None:
    here, there = fleet.kubectl.kubeconfig, other.kubectl.kubeconfig
    before, vms = fleet.names(KINDS) - OWN, fleet.vms()

    planned = move(here, there, "--dry-run")
    assert f"Cluster {FLEET}/two  (paused first)" in planned
    assert fleet.names(KINDS) - OWN == before
    assert fleet.kubectl.ok("get", "cluster", "two", "-n", FLEET, "-o", "jsonpath={.spec.paused}") == ""

    for line in ("pausing", "copying", "deleting"):
        kill_at(line, here, there)
    move(here, there)
    assert fleet.names(KINDS) - OWN == set()
    arrived(other, before)

    files = tmp_path / "files"
    files.mkdir()
    kill_at("copying", there, files)
    move(there, files)
    assert other.names(KINDS) - OWN == set()
    assert {stat.S_IMODE(each.stat().st_mode) for each in files.iterdir()} == {0o600}
    assert stat.S_IMODE(files.stat().st_mode) == 0o700
    with real(binaries, program, tmp_path, *fleet.way()) as last:
        home: Site = last or fleet
        move(files, home.kubectl.kubeconfig)
        assert list(files.iterdir()) == []
        arrived(home, before)
        if last is not None:  # clusterctl moves what we moved, and we move what it moved
            last.clusterctl.ok("move", "-n", FLEET, "--to-kubeconfig", str(there))
            assert last.names(KINDS) - OWN == set()
            arrived(other, before)
            move(there, here)
    arrived(fleet, before)
    assert fleet.vms() == vms
    fleet.scale("two", 2)
    assert vms.items() <= fleet.vms().items()


def test_what_stands_in_the_way_is_named_with_its_cure(fleet: Plane, other: Plane, tmp_path: Path) -> None:
    here, there = fleet.kubectl.kubeconfig, other.kubectl.kubeconfig
    other.kubectl.run("create", "namespace", FLEET)
    other.kubectl.ok("create", "secret", "generic", "nutanix-credentials", "-n", FLEET, "--from-literal=a=b")
    try:
        done = homeport("move", "--from", str(here), "--to", str(there), "-n", FLEET)
        assert done.returncode == 1
        text = f"Secret {FLEET}/nutanix-credentials exists on the target and differs: delete or rename it on one side"
        assert text in done.stderr
    finally:
        other.kubectl.ok("delete", "secret", "nutanix-credentials", "-n", FLEET)
    same = homeport("move", "--from", str(here), "--to", str(here))
    assert "the source and the target are the same plane" in same.stderr
    (tmp_path / "note").write_text("x")
    full = homeport("move", "--from", str(here), "--to", str(tmp_path))
    assert f"{tmp_path} is not empty: name an empty directory" in full.stderr
    none = homeport("move", "--from", str(tmp_path), "--to", str(there))
    assert "contains no objects of a move" in none.stderr
    assert fleet.kubectl.ok("get", "cluster", "two", "-n", FLEET, "-o", "jsonpath={.spec.paused}") == ""
