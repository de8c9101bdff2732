"""Clusters that upstream's managers made, looked after by ours from then on: on the same server, with nothing replaced."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from capikit import clusterctl, guide, upstream
from capikit.clusterctl import Clusterctl
from capikit.foreign import Managers
from capikit.ours import controllers
from capikit.world import WorldProcess
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.clusterctl.v1alpha3 import Provider
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource
from homeport.app.platform import chosen
from homeport.capi.definition.inventory import BOOTSTRAP, CONTROL_PLANE, CORE, NAMESPACE, is_inventory, render_provider
from homeport.capi.name import CLUSTERCTL_LABEL
from homeport.client import kubeconfig
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery import yaml
from homeport.providers.nutanix.definition import LISTED as NUTANIX
from realkube import RealKube

pytestmark = [pytest.mark.timeout(1500)]

ROOT = Path(__file__).resolve().parents[2]
SECRET = Resource("", "v1", "Secret", "secrets")
NODE = Resource("", "v1", "Node", "nodes", namespaced=False)


@pytest.fixture
def world() -> Iterator[WorldProcess]:
    with WorldProcess() as made:
        yield made


@pytest.fixture
def kube(binaries: dict[str, Path] | str) -> Iterator[RealKube]:
    if not os.environ.get("HOMEPORT_UPSTREAM"):
        pytest.skip("takes minutes: `make upstream` runs it")
    if isinstance(binaries, str):
        pytest.skip(binaries)
    if reason := upstream.lacking("manifests", *upstream.MANAGERS):
        pytest.skip(reason)
    with RealKube(binaries) as made:
        yield made


@pytest.fixture
def program() -> Path:
    found = clusterctl.find()
    if isinstance(found, str):
        pytest.skip(found)
    return found


async def by_upstream(kube: RealKube, world: WorldProcess, client: HttpClient) -> dict[str, Machine]:
    """A cluster of three and two, made by upstream's managers, which are stopped then."""
    with Managers(kube, proxy=world.proxy, authority=world.authority) as managers:
        text = "---\n".join(yaml.dump(each) for each in guide.for_upstream(3, 2, world.port))
        applied = kube.kubectl("apply", "-f", "-", stdin=text)
        assert applied.returncode == 0, applied.stderr
        await guide.until_machines(client, guide.all_running(5), 600, managers.logs)
        return await guide.until_machines(client, guide.in_order(5), 300, managers.logs)


def prepare(kube: RealKube) -> None:
    """What docs/howto/clusterctl.md says: their webhooks go, our definitions come in place of theirs."""
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        done = kube.kubectl("delete", kind, "--all")
        assert done.returncode == 0, done.stderr
    folder = str(ROOT / "config" / "crds")
    for command in (("apply", "--server-side", "--force-conflicts"), ("replace",)):
        done = kube.kubectl(*command, "-f", folder)
        assert done.returncode == 0, done.stderr


async def nodes(kube_client: HttpClient, proxy: str) -> dict[str, str]:
    """Uid by name, as the workload cluster answers by the kubeconfig of whoever made it."""
    secret = await kube_client.get(SECRET, Key("default", f"{guide.NAME}-kubeconfig"))
    with tempfile.NamedTemporaryFile() as file:
        file.write(base64.b64decode(secret["data"]["value"]))
        file.flush()
        config = kubeconfig.load(Path(file.name))
    async with HttpClient(replace(config, proxy=proxy)) as workload:
        return {node.name: node.uid for node in (await workload.list(NODE, Query())).items}


async def test_a_cluster_of_upstream_goes_on_with_our_controllers_and_no_machine_notices(
    kube: RealKube, world: WorldProcess, client: HttpClient
) -> None:
    before = await by_upstream(kube, world, client)
    touched, members = world.state()["touched"], await nodes(client, world.proxy)
    assert len(touched) == len(members) == 5
    prepare(kube)
    options = ("--namespace", "default", "--proxy", world.proxy, "--trust", str(world.authority))
    with controllers(kube.kubeconfig, *options) as log:

        def explain() -> str:
            return log.read_text()[-6000:]

        await client.patch(MachineDeployment, guide.WORKERS, MergePatch({"spec": {"replicas": 3}}))
        after = await guide.until_machines(client, guide.in_order(6), 300, explain)
        assert before.keys() < after.keys(), explain()
        assert {name: m.metadata.uid for name, m in before.items()}.items() <= {
            name: m.metadata.uid for name, m in after.items()
        }.items()
        assert touched.items() <= world.state()["touched"].items()
        assert members.items() <= (await nodes(client, world.proxy)).items()
        plane = await client.get(KubeadmControlPlane, guide.CONTROL_PLANE)
        assert plane.status.deprecated.v1beta1.conditions == [], "nobody keeps up what upstream wrote there"

        await guide.upgrade_control_plane(client)
        await guide.until_machines(client, guide.planes_in_order(3, guide.NEWER), 600, explain)
        await guide.upgrade_workers(client)
        await guide.until_machines(client, guide.in_order(6, guide.NEWER), 600, explain)
        assert not (await nodes(client, world.proxy)).keys() & members.keys()

        await client.delete(Cluster, Key("default", guide.NAME))
        await guide.until_machines(client, lambda machines: not machines, 300, explain)
        left: dict[str, Any] = world.state()
        assert left["vms"] == []


def listed(kube: RealKube) -> None:
    """What `clusterctl init` leaves behind, besides the managers: labels on definitions, and the inventory."""
    version = upstream.version("core").rpartition(" ")[2]
    known = [each._replace(version=version) for each in (CORE, BOOTSTRAP, CONTROL_PLANE)]
    (definition,) = [crd for crd in chosen().definitions() if is_inventory(crd)]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    objects = [definition, namespace, *(render_provider(each) for each in (*known, NUTANIX))]
    for command, stdin in (
        (("label", "crd", "--all", f"{CLUSTERCTL_LABEL}="), ""),
        (("apply", "--server-side", "-f", "-"), yaml.dump(objects[0])),
        (("wait", "--for=condition=Established", "crd", definition["metadata"]["name"]), ""),
        (("apply", "-f", "-"), "---\n".join(yaml.dump(each) for each in objects[1:])),
    ):
        done = kube.kubectl(*command, stdin=stdin)
        assert done.returncode == 0, done.stderr


async def modest(client: HttpClient) -> None:
    """A plane that claims no more than upstream has here: clusterctl moves nothing to where something is older."""
    version = upstream.version("core").rpartition(" ")[2]
    for each in (await client.list(Provider, Query(namespace=NAMESPACE))).items:
        key = Key(NAMESPACE, each.metadata.name)
        if each.provider_name not in ("cluster-api", "kubeadm", NUTANIX.name):
            await client.delete(Provider, key)
        elif each.provider_name != NUTANIX.name:
            await client.patch(Provider, key, MergePatch({"version": version}))


@contextmanager
def plane(data: Path, world: WorldProcess) -> Iterator[Path]:
    def homeport(*args: str) -> None:
        command = [sys.executable, "-m", "homeport", *args, "--data", str(data)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    homeport("up", "--detach", "--listen", "127.0.0.1:0", "--proxy", world.proxy, "--trust", str(world.authority))
    try:
        yield data / "kubeconfig"
    finally:
        homeport("down")


async def test_a_cluster_of_upstream_moves_to_a_plane_and_back_and_no_machine_notices(
    kube: RealKube, world: WorldProcess, client: HttpClient, program: Path, tmp_path: Path
) -> None:
    with (
        Managers(kube, proxy=world.proxy, authority=world.authority) as managers,
        plane(tmp_path / "data", world) as ours,
    ):
        text = "---\n".join(yaml.dump(each) for each in guide.for_upstream(1, 1, world.port))
        applied = kube.kubectl("apply", "-f", "-", stdin=text)
        assert applied.returncode == 0, applied.stderr
        await guide.until_machines(client, guide.in_order(2), 600, managers.logs)
        listed(kube)

        def log() -> str:
            return (tmp_path / "data" / "homeport.log").read_text()[-6000:]

        async with HttpClient(kubeconfig.load(ours)) as there:
            touched = world.state()["touched"]
            Clusterctl(program, kube.kubeconfig, tmp_path).ok("move", "--to-kubeconfig", str(ours))
            await guide.until_machines(there, guide.in_order(2), 300, log)
            assert world.state()["touched"] == touched
            await there.patch(MachineDeployment, guide.WORKERS, MergePatch({"spec": {"replicas": 2}}))
            await guide.until_machines(there, guide.in_order(3), 300, log)
            assert touched.items() < world.state()["touched"].items()

            await modest(there)
            grown = world.state()["touched"]
            Clusterctl(program, ours, tmp_path).ok("move", "--to-kubeconfig", str(kube.kubeconfig))
        await guide.until_machines(client, guide.in_order(3), 300, managers.logs)
        back = world.state()["touched"]
        assert touched.items() < back.items()
        # Upstream writes an attribute of its own on the VM that ours made; nothing else happens to it.
        assert {name: (vm[0], vm[2]) for name, vm in back.items()} == {
            name: (vm[0], vm[2]) for name, vm in grown.items()
        }
        await client.patch(MachineDeployment, guide.WORKERS, MergePatch({"spec": {"replicas": 1}}))
        await guide.until_machines(client, guide.in_order(2), 300, managers.logs)
        await client.delete(Cluster, Key("default", guide.NAME))
        await guide.until_machines(client, lambda machines: not machines, 300, managers.logs)
        assert world.state()["vms"] == []
