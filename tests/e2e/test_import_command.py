"""`homeport import` on Nutanix as a user runs it: a cluster whose plane is gone, from the dry run to an upgrade."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from apply import apply
from e2e.test_operator_command import EXAMPLES, HOMEPORT, SECONDS, Plane, on
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachine
from homeport.app.discovery.dial import simulated_dial
from homeport.app.importer.account import open_importer
from homeport.capi.remote import pki
from homeport.client.errors import NotFound
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, MergePatch
from homeport.infra.candidate import Mark
from homeport.machinery.yaml import load_all
from homeport.runtime.clock import SystemClock
from present import present
from scenario.importer.forgotten import write_file

pytestmark = [pytest.mark.timeout(500)]

T = TypeVar("T")
OLD, NEW = Key("default", "harbour"), Key("default", "pier")
SMALL = (("replicas: 3", "replicas: 1"), ("replicas: 2", "replicas: 1"))


@dataclass(frozen=True)
class Forgotten:
    """A cluster that no plane manages. `infra`: its NutanixCluster; `old`: its NutanixMachines by VM, as they were."""

    plane: Plane
    folder: Path
    infra: dict[str, Any]
    old: dict[str, dict[str, Any]]

    @property
    def vms(self) -> set[str]:
        return set(self.old)

    def command(self, *more: str, name: str = NEW.name) -> list[str]:
        files = ["--cluster-kubeconfig", str(self.folder / "harbour.kubeconfig"), "--pki", str(self.folder / "pki")]
        account = ["--provider", "nutanix", "--secret", "harbour-prism", "--address", "prism-central.example.com"]
        return ["import", "cluster", name, *files, *account, *more]

    def kill_at(self, line: str) -> None:
        """Starts the import, and kills it as soon as it prints such a line."""
        words = [*HOMEPORT[:1], "-u", *HOMEPORT[1:], *self.command("--apply"), *self.plane.place]
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.plane.environment
        )
        said = []
        try:
            for each in present(process.stdout):
                said.append(each)
                if each.startswith(line):
                    return
            raise AssertionError(f"it never printed {line!r}: {''.join(said)}")
        finally:
            process.kill()
            process.communicate()

    def machines(self) -> dict[str, dict[str, Any]]:
        """By VM."""

        async def read(client: HttpClient) -> dict[str, dict[str, Any]]:
            found = (await client.list(NutanixMachine.__resource__)).items
            return {str(each["spec"].get("providerID", "")).rpartition("/")[2]: each for each in found}

        return on(self.plane, read)

    def until_ready(self, control_planes: int, workers: int) -> None:
        deadline = time.monotonic() + SECONDS
        while True:
            [cluster] = self.plane.read("status")["clusters"]
            counts = [(part["ready"], part["desired"]) for part in (cluster["controlPlane"], cluster["workers"])]
            if cluster["health"] == "Available" and counts == [(control_planes,) * 2, (workers,) * 2]:
                return
            assert time.monotonic() < deadline, cluster
            time.sleep(0.5)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    made = Plane(tmp_path_factory.mktemp("import") / "data")
    made.homeport("up", "--listen", "127.0.0.1:0", "--sim", "prism", "--detach")
    yield made
    made.start("down")


@pytest.fixture(scope="module")
def forgotten(plane: Plane, tmp_path_factory: pytest.TempPathFactory) -> Forgotten:
    """The plane creates a cluster and forgets it; its VMs still carry the marks."""
    text = (EXAMPLES / "02-cluster/cluster.yaml").read_text()
    for old, new in SMALL:
        text = text.replace(old, new)
    apply(plane.data / "kubeconfig", load_all(text))
    found = Forgotten(plane, tmp_path_factory.mktemp("site"), {}, {})
    found.until_ready(1, 1)
    on(plane, lambda client: copy_files(client, found.folder))
    infra = on(plane, lambda client: client.get(NutanixCluster.__resource__, OLD))
    found.infra.update({**NutanixCluster.__resource__.type_meta, **infra})
    found.old.update(found.machines())
    (found.folder / "moved").mkdir()
    plane.homeport("move", "--to", str(found.folder / "moved"))
    secret = next(each for each in load_all(text) if each["kind"] == "Secret")
    apply(plane.data / "kubeconfig", [secret])
    return found


async def copy_files(client: HttpClient, folder: Path) -> None:
    """What an administrator copies from a control plane."""

    async def secret(name: str) -> dict[str, bytes]:
        data = (await client.get(pki.SECRET, Key(OLD.namespace, name)))["data"]
        return {key: base64.b64decode(value) for key, value in data.items()}

    write_file(folder / "harbour.kubeconfig", (await secret("harbour-kubeconfig"))["value"])
    for purpose in pki.GENERATED:
        data = await secret(f"harbour-{purpose}")
        for path, name in zip(pki.files(purpose, str(folder / "pki")), ("tls.crt", "tls.key"), strict=True):
            write_file(Path(path), data[name])


def remove_marks(found: Forgotten) -> None:
    """At Prism Central, as if the VMs had been created by hand."""

    async def unmark(client: HttpClient) -> None:
        importer = await open_importer(client, found.infra, SystemClock(), await simulated_dial(client))
        try:
            for vm, each in found.old.items():
                meta = each["metadata"]
                mark = Mark(Key("default", meta["name"]), meta["uid"], OLD.name, found.infra["metadata"]["uid"])
                assert await importer.unmark(vm, mark), vm
            await importer.forget(OLD.name)
        finally:
            await importer.close()

    on(found.plane, unmark)


async def exists(client: HttpClient) -> bool:
    try:
        await client.get(Cluster, NEW)
    except NotFound:
        return False
    return True


def test_a_cluster_on_nutanix_is_imported_scaled_and_upgraded_with_the_command_line(forgotten: Forgotten) -> None:
    plane = forgotten.plane
    marked = plane.start(*forgotten.command())
    assert marked.returncode == 1
    assert "which a Homeport plane sets on its VMs" in marked.stderr
    remove_marks(forgotten)

    planned = plane.homeport(*forgotten.command())
    assert "would roll: nothing" in planned
    assert "nothing was changed; to import, repeat the command with --apply" in planned
    assert all(vm in planned for vm in forgotten.vms)
    objects = json.loads(plane.homeport(*forgotten.command("-o", "json")))
    assert {"Cluster", "NutanixCluster", "KubeadmControlPlane", "MachineDeployment"} <= {e["kind"] for e in objects}
    assert {value for e in objects if e["kind"] == "Secret" for value in e.get("data", {}).values()} == {"<hidden>"}
    assert "cluster/pier" in plane.homeport(*forgotten.command("-o", "name")).splitlines()
    assert "Cluster/pier" not in planned
    assert "Cluster/pier" in plane.homeport(*forgotten.command("-o", "wide")).splitlines()
    assert not on(plane, exists)

    for line in ("created ", "marked VM "):
        forgotten.kill_at(line)
        assert on(plane, lambda client: client.get(Cluster, NEW)).spec.paused
    assert "Cluster default/pier is available" in plane.homeport(*forgotten.command("--apply"))
    forgotten.until_ready(1, 1)
    assert set(forgotten.machines()) == forgotten.vms

    again = plane.homeport(*forgotten.command("--apply"))
    assert "Cluster default/pier is imported already" in again
    other = plane.start(*forgotten.command(name="jetty"))
    assert other.returncode == 1
    assert "which a Homeport plane sets on its VMs" in other.stderr
    assert set(forgotten.machines()) == forgotten.vms

    more = MergePatch({"spec": {"replicas": 2}})
    on(plane, lambda client: client.patch(MachineDeployment, Key("default", "pier-md-0"), more))
    forgotten.until_ready(1, 2)
    assert set(forgotten.machines()) > forgotten.vms

    upgrade = ("upgrade", "cluster", "pier", "--to", "v1.30.0", "--apply")
    refused = plane.start(*upgrade)  # the templates name the image of the VMs by its UUID
    assert refused.returncode == 1
    assert "contains Kubernetes v1.29.0 (from its name)" in refused.stdout
    assert "to use an image of v1.30.0, add --image NAME" in refused.stderr
    plane.homeport(*upgrade, "--image", "ubuntu-22.04-kube-v1.30.0")
    deadline = time.monotonic() + SECONDS
    while forgotten.vms & set(forgotten.machines()):
        assert time.monotonic() < deadline, plane.homeport("status")
        time.sleep(1.0)
    forgotten.until_ready(1, 2)
