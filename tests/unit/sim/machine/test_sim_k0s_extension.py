from __future__ import annotations

import asyncio
import base64
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.clock import run_virtual
from homeport.runtime.event import EVENT
from homeport.sim.engine.tls import Authority
from homeport.sim.machine.workload.k0s.definition import CHART, CLUSTER_CONFIG
from homeport.sim.machine.workload.kind import CONFIG_MAP, DAEMON_SET, SECRET
from homeport.sim.registry.server import ChartRegistry
from homeport.sim.registry.shelf import PublishedChart, Shelf
from unit.sim.machine.k0s_kit import K0S_IMAGE, cluster_spec, controller_data, controller_token
from unit.sim.machine.sim_kit import Sim, simulation

REPOSITORY = "https://nutanix.github.io/helm/"
CONFIG = Key("kube-system", "k0s")


def chart(version: str) -> dict[str, bytes]:
    template = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n"
        "  version: {{ .Chart.Version }}\n  color: {{ .Values.color }}\n"
        "{{- if .Values.broken }}{{ fail .Values.broken }}{{ end }}\n"
    )
    meta = f"apiVersion: v2\nname: colors\nversion: {version}\nappVersion: v{version}\n"
    values = b"color: red\nbroken: ''\n"
    return {"Chart.yaml": meta.encode(), "values.yaml": values, "templates/map.yaml": template.encode()}


def published(repository: str, version: str) -> PublishedChart:
    return PublishedChart(repository, "colors", version, lambda: chart(version))


def helm(version: str = "1.0.0", name: str = "nutanix/colors", values: str = "") -> dict[str, Any]:
    wanted = {"name": "paint", "chartname": name, "version": version, "namespace": "painters", "values": values}
    return {"helm": {"repositories": [{"name": "nutanix", "url": REPOSITORY}], "charts": [wanted]}}


@asynccontextmanager
async def site(tmp_path: Path) -> AsyncIterator[Sim]:
    async with simulation() as sim:
        shelf = Shelf()
        shelf.publish(published(REPOSITORY, "1.0.0"), published(REPOSITORY, "1.1.0"))
        shelf.publish(published("oci://ghcr.io/painters/charts", "2.0.0"))
        certificate = Authority.ensure(tmp_path, sim.clock).called("registry", ("localhost",), sim.clock)
        registry = ChartRegistry(shelf, certificate, sim.clock.now)
        registry.attach(sim.network)
        try:
            yield sim
        finally:
            await registry.close()


async def boot(sim: Sim, extensions: dict[str, Any] | None = None, **more: Any) -> str:
    config = cluster_spec(**({"extensions": extensions} if extensions else {}))
    keys = ("files", "post")
    data = controller_data(sim.secrets, config=config, **{key: more.pop(key) for key in keys if key in more})
    return await sim.boot("cp-0", data, image=K0S_IMAGE, **more)


async def configure(sim: Sim, spec: dict[str, Any]) -> None:
    await sim.cluster.client().patch(CLUSTER_CONFIG, CONFIG, MergePatch({"spec": spec}))
    await asyncio.sleep(1)


async def painted(sim: Sim) -> dict[str, str]:
    found = await sim.cluster.client().get(CONFIG_MAP, Key("painters", "paint"))
    return dict(found["data"])


async def status(sim: Sim) -> dict[str, Any]:
    found = await sim.cluster.client().get(CHART, Key("kube-system", "k0s-addon-chart-paint"))
    return dict(found.get("status") or {})


def test_a_chart_of_the_configuration_is_installed_upgraded_and_removed(tmp_path: Path) -> None:
    async def main() -> None:
        async with site(tmp_path) as sim:
            await boot(sim, helm())
            assert await painted(sim) == {"version": "1.0.0", "color": "red"}
            found = await status(sim)
            assert (found["version"], found["appVersion"], found["revision"]) == ("1.0.0", "v1.0.0", 1)
            assert (found["releaseName"], found["namespace"], found.get("error")) == ("paint", "painters", None)
            secret = await sim.cluster.client().get(SECRET, Key("painters", "sh.helm.release.v1.paint.v1"))
            raw = gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"])))
            assert orjson.loads(raw)["info"]["status"] == "deployed"
            await configure(sim, {"extensions": helm("1.1.0", values="color: blue\n")})
            assert await painted(sim) == {"version": "1.1.0", "color": "blue"}
            assert (await status(sim))["revision"] == 2
            await configure(sim, {"extensions": None})
            with pytest.raises(NotFound):
                await painted(sim)
            with pytest.raises(NotFound):
                await status(sim)

    run_virtual(main())


def test_a_chart_of_an_oci_registry_is_installed(tmp_path: Path) -> None:
    async def main() -> None:
        async with site(tmp_path) as sim:
            await boot(sim, helm("", "oci://ghcr.io/painters/charts/colors"))
            assert (await painted(sim))["version"] == "2.0.0"

    run_virtual(main())


@pytest.mark.parametrize(
    ("extensions", "words"),
    [
        (helm("9.9.9"), 'chart "colors" version "9.9.9" not found in https://nutanix.github.io/helm/'),
        (helm(name="other/colors"), "repository 'other' not found in cluster configuration"),
        (helm(name="colors"), "invalid chart name"),
        (helm(values="broken: no more paint\n"), "no more paint"),
        (helm(values="[1"), "values are not valid YAML"),
        (helm(name="oci://registry.example.com/x"), "is not a valid chart repository or cannot be reached"),
    ],
)
def test_a_chart_that_can_not_be_installed_says_why(tmp_path: Path, extensions: Any, words: str) -> None:
    async def main() -> None:
        async with site(tmp_path) as sim:
            console = await boot(sim, extensions)
            found = await status(sim)
            assert found["error"].startswith('can\'t reconcile installation for "k0s-addon-chart-paint": ')
            assert words in found["error"]
            assert words.replace('"', '\\"') in console
            await configure(sim, {"extensions": helm()})
            assert not (await status(sim)).get("error")

    run_virtual(main())


def test_a_controller_without_internet_can_not_fetch_charts(tmp_path: Path) -> None:
    async def main() -> None:
        async with site(tmp_path) as sim:
            await boot(sim, helm(), lacks=("dns",))
            assert not sim.fleet.clusters()  # k0s could not be downloaded; the next image has it
            data = controller_data(sim.secrets, config=cluster_spec(extensions=helm()), get="true")
            await sim.boot("cp-1", data, image="ubuntu-22.04-k0s-v1.31.5", lacks=("dns",))
            assert "Could not resolve host: nutanix.github.io" in (await status(sim))["error"]

    run_virtual(main())


def test_dynamic_configuration_is_published_and_followed(tmp_path: Path) -> None:
    async def main() -> None:
        async with site(tmp_path) as sim:
            await boot(sim)
            client = sim.cluster.client()
            spec = (await client.get(CLUSTER_CONFIG, CONFIG))["spec"]
            assert "api" not in spec
            assert "controlPlaneLoadBalancing" not in spec["network"]
            await configure(sim, {"network": {"kubeProxy": {"disabled": True}}})
            with pytest.raises(NotFound):
                await client.get(DAEMON_SET, Key("kube-system", "kube-proxy"))
            await configure(sim, {"network": {"provider": "calico", "kubeProxy": None}})
            await configure(sim, {"network": {"provider": None}})
            await client.get(DAEMON_SET, Key("kube-system", "kube-proxy"))
            events = (await client.list(EVENT)).items
            told = [(each["reason"], each["message"]) for each in events if each["reason"].endswith("Reconciling")]
            assert told == [
                (
                    "FailedReconciling",
                    "failed to validate cluster configuration: cannot change CNI provider from kuberouter to calico",
                )
            ]
            assert sum(each["reason"] == "SuccessfulReconcile" for each in events) == 3

    run_virtual(main())


def manifest(name: str, stack: str = "mine", file: str = "a.yaml") -> dict[str, Any]:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
    return {"path": f"/var/lib/k0s/manifests/{stack}/{file}", "content": yaml.safe_dump(body)}


async def maps(sim: Sim) -> set[str]:
    found = (await sim.cluster.client().list(CONFIG_MAP)).items
    return {each["metadata"]["name"] for each in found if each["metadata"]["namespace"] == "default"} - {
        "kube-root-ca.crt"
    }


def test_manifests_in_folders_are_applied_and_pruned(tmp_path: Path) -> None:
    async def main() -> None:
        async with site(tmp_path) as sim:
            loose = {**manifest("loose"), "path": "/var/lib/k0s/manifests/loose.yaml"}
            await boot(sim, files=[manifest("one"), manifest("two", file="b.yaml"), loose, manifest("x", "helm")])
            assert await maps(sim) == {"one", "two"}
            machine = sim.fleet.find("cp-0")
            assert machine is not None
            machine.disk.remove("/var/lib/k0s/manifests/mine/b.yaml")
            await asyncio.sleep(1)
            assert await maps(sim) == {"one"}
            machine.disk.write("/var/lib/k0s/manifests/later/a.yaml", manifest("later")["content"].encode())
            await asyncio.sleep(1)
            assert await maps(sim) == {"one", "later"}
            machine.disk.wipe("/var/lib/k0s/manifests")
            await asyncio.sleep(1)
            assert await maps(sim) == set()

    run_virtual(main())


def test_a_manifest_that_can_not_be_applied_is_logged_and_tried_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with site(tmp_path) as sim:
            broken = {**manifest("one"), "content": "a: [1"}
            unknown = {**manifest("two", "other"), "content": "apiVersion: x/v1\nkind: Thing\nmetadata: {name: t}\n"}
            console = await boot(sim, files=[broken, unknown, manifest("three", "good")])
            assert "Failed to run stack mine: /var/lib/k0s/manifests/mine/a.yaml" in console
            assert 'no matches for kind \\"Thing\\" in version \\"x/v1\\"' in console
            assert await maps(sim) == {"three"}
            machine = sim.fleet.find("cp-0")
            assert machine is not None
            machine.disk.rewrite("/var/lib/k0s/manifests/mine/a.yaml", manifest("one")["content"].encode())
            await asyncio.sleep(1)
            assert await maps(sim) == {"one", "three"}

    run_virtual(main())


def test_the_folder_of_the_controller_that_leads_counts(tmp_path: Path) -> None:
    async def main() -> None:
        async with site(tmp_path) as sim:
            await boot(sim, files=[manifest("first")])
            for name in ("cp-1", "cp-2"):
                token = await controller_token(sim)
                data = controller_data(None, token=token, files=[manifest(f"of-{name}", "own")])
                await sim.boot(name, data, image=K0S_IMAGE)
            assert await maps(sim) == {"first"}
            sim.power_off("cp-0")
            await asyncio.sleep(5)
            assert await maps(sim) == {"first", "of-cp-1"}

    run_virtual(main())
