"""The stand-in for registries and chart repositories, over HTTPS on the simulated network."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from homeport.app.components import COMPONENTS
from homeport.app.simulation.registry import published_charts, read_folder
from homeport.capi.component import ChartFolder
from homeport.machinery import yaml
from homeport.machinery.chart import ReleaseInfo, load_chart, render, unpack
from homeport.runtime.clock import SystemClock
from homeport.sim.engine.tls import Authority
from homeport.sim.machine.workload.standin.wire import Message, ask
from homeport.sim.network import Network
from homeport.sim.registry.server import ChartRegistry
from homeport.sim.registry.shelf import NoSuchChart, PublishedChart, Shelf, digest_of

OCI = "oci://ghcr.io/k0rdent/kcm/charts"


def files(version: str) -> dict[str, bytes]:
    return {"Chart.yaml": f"apiVersion: v2\nname: kcm\nversion: {version}\n".encode(), "templates/a.yaml": b""}


def kcm(version: str) -> PublishedChart:
    return PublishedChart(OCI, "kcm", version, lambda: files(version))


class Site:
    def __init__(self, network: Network, authority: Authority, shelf: Shelf) -> None:
        self.network = network
        self.shelf = shelf
        self._tls = ssl.create_default_context(cafile=str(authority.path))

    async def get(self, url: str, method: str = "GET") -> Message:
        host, _, path = url.removeprefix("https://").partition("/")
        sock = await self.network.connect("outside", host, 443)
        return await ask(sock, self._tls, host, f"{method} /{path}", {})


@asynccontextmanager
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    clock, network, shelf = SystemClock(), Network(), Shelf()
    shelf.publish(*published_charts(), kcm("1.2.0"), kcm("1.10.0"), kcm("2.0.0-rc.1"))
    authority = Authority.ensure(tmp_path, clock)
    registry = ChartRegistry(shelf, authority.called("registry", ("localhost",), clock), clock.now)
    registry.attach(network)
    try:
        yield Site(network, authority, shelf)
    finally:
        await registry.close()


async def test_a_repository_has_an_index_and_its_charts(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        answer = await s.get("https://nutanix.github.io/helm/index.yaml")
        assert answer.status == 200
        entries = yaml.load(answer.body)["entries"]
        versions = {name: [each["version"] for each in found] for name, found in entries.items()}
        assert versions["nutanix-csi-storage"] == ["3.0.0"]
        assert versions["nutanix-cloud-controller-manager"] == ["0.3.0"]
        entry = entries["nutanix-csi-storage"][0]
        archive = await s.get(entry["urls"][0])
        assert digest_of(archive.body) == f"sha256:{entry['digest']}"
        assert load_chart(unpack(archive.body)).version == "3.0.0"
        assert (await s.get("https://nutanix.github.io/helm/other-1.0.0.tgz")).status == 404
        assert (await s.get("https://nutanix.github.io/elsewhere/index.yaml")).status == 404


async def test_a_chart_is_pulled_from_a_registry(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        base = "https://ghcr.io/v2/k0rdent/kcm/charts/kcm"
        assert (await s.get("https://ghcr.io/v2/")).status == 200
        tags = orjson.loads((await s.get(f"{base}/tags/list")).body)["tags"]
        assert tags == ["1.2.0", "1.10.0", "2.0.0-rc.1"]
        head = await s.get(f"{base}/manifests/1.2.0")
        manifest = orjson.loads(head.body)
        assert head.headers["docker-content-digest"] == digest_of(head.body)
        layer = manifest["layers"][0]
        blob = await s.get(f"{base}/blobs/{layer['digest']}")
        assert (digest_of(blob.body), len(blob.body)) == (layer["digest"], layer["size"])
        assert load_chart(unpack(blob.body)).version == "1.2.0"
        assert (await s.get(f"{base}/manifests/9.9.9")).status == 404
        assert (await s.get(f"{base}/manifests/1.2.0", "PUT")).status == 405
        unknown = await s.get("https://ghcr.io/v2/k0rdent/other/tags/list")
        assert orjson.loads(unknown.body)["errors"][0]["code"] == "NAME_UNKNOWN"


def test_a_version_is_picked_as_helm_does_it() -> None:
    shelf = Shelf()
    shelf.publish(kcm("1.2.0"), kcm("1.10.0"), kcm("2.0.0-rc.1"))
    assert shelf.pick(OCI, "kcm").version == "1.10.0"
    assert shelf.pick(f"{OCI}/", "kcm", "~1.2").version == "1.2.0"
    assert shelf.pick(OCI, "kcm", "v1.2.0").version == "1.2.0"
    assert shelf.pick(OCI, "kcm", "2.0.0-rc.1").version == "2.0.0-rc.1"
    with pytest.raises(NoSuchChart, match=r"available: 1\.10\.0, 1\.2\.0"):
        shelf.pick(OCI, "kcm", "9.9.9")


@pytest.mark.parametrize(
    "folder", [each for component in COMPONENTS for each in component.charts], ids=lambda f: f.name
)
def test_charts_of_components_have_the_version_that_they_are_published_under(folder: ChartFolder) -> None:
    chart = load_chart(read_folder(folder))
    assert (chart.name, chart.version) == (folder.name, folder.version)


def test_the_cloud_controller_manager_is_configured_by_its_values() -> None:
    folder = next(each for one in COMPONENTS for each in one.charts if each.name == "nutanix-cloud-controller-manager")
    chart = load_chart(read_folder(folder))
    bare = render(chart, {}, ReleaseInfo("ccm", "kube-system"))
    assert {each.object["kind"] for each in bare.manifests} == {
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Deployment",
    }
    given = {"prismCentralEndPoint": "10.0.0.10", "username": "admin", "password": 'a"b'}
    full = {
        each.object["kind"]: each.object for each in render(chart, given, ReleaseInfo("ccm", "kube-system")).manifests
    }
    config = orjson.loads(full["ConfigMap"]["data"]["nutanix_config.json"])
    assert config["prismCentral"]["address"] == "10.0.0.10"
    credentials = orjson.loads(full["Secret"]["stringData"]["credentials"])
    assert credentials[0]["data"]["prismCentral"]["password"] == 'a"b'
