"""Charts of templates are found by the objects that a template names, and every other source is refused clearly."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from homeport.api.k0rdent.v1beta1.template import HelmSpec
from homeport.capi.chartsettings import ChartSettings
from homeport.client.protocol import Key
from homeport.helm.errors import SourceError
from homeport.platforms.k0rdent.flux import definitions
from homeport.platforms.k0rdent.source import Sources
from homeport.runtime.testing import establish, plane
from homeport.sim.registry.shelf import PublishedChart

CHART = {"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "values.yaml": "replicas: 1\n", "cm.yaml": ""}


def helm(**spec: Any) -> HelmSpec:
    return msgspec.convert(spec, HelmSpec)


def source(kind: str, name: str, spec: Mapping[str, Any], namespace: str = "default") -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": kind, "metadata": meta, "spec": dict(spec)}


REPOSITORY = source(
    "HelmRepository", "charts", {"url": "oci://registry.example.com/charts", "type": "oci", "secretRef": {"name": "me"}}
)
REFERENCE = source(
    "HelmChart", "web", {"chart": "web", "version": "1.x", "sourceRef": {"kind": "HelmRepository", "name": "charts"}}
)
ARTIFACT = source("OCIRepository", "web", {"url": "oci://registry.example.com/charts/web", "ref": {"tag": "2.0.0"}})


async def test_a_chart_is_found_through_a_repository_a_helm_chart_and_an_artifact() -> None:
    async with plane() as p:
        await establish(p.client, *definitions())
        await p.have(REPOSITORY, REFERENCE, ARTIFACT)
        sources = Sources(p.client, ChartSettings())
        spec = {"chart": "web", "version": "1.0.0", "sourceRef": {"kind": "HelmRepository", "name": "charts"}}
        found = await sources.find(helm(chartSpec=spec), "default")
        assert (found.repository, found.chart, found.version) == ("oci://registry.example.com/charts", "web", "1.0.0")
        assert found.secret == Key("default", "me")
        assert sources.location(found).oci == "oci://registry.example.com/charts/web"
        found = await sources.find(helm(chartRef={"kind": "HelmChart", "name": "web"}), "default")
        assert (found.chart, found.version) == ("web", "1.x")
        found = await sources.find(helm(chartRef={"kind": "OCIRepository", "name": "web"}), "default")
        assert (sources.location(found).oci, found.version) == ("oci://registry.example.com/charts/web", "2.0.0")
        with pytest.raises(SourceError, match="Secret default/me of the repository does not exist"):
            await sources.fetch(await sources.find(helm(chartSpec=spec), "default"))


def config_map(name: str, **parts: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, **parts}


async def test_a_chart_of_a_config_map_is_an_archive_or_files() -> None:
    packed = PublishedChart("oci://x", "web", "1.0.0", lambda: {key: text.encode() for key, text in CHART.items()})
    async with plane() as p:
        await p.have(config_map("files", data=CHART))
        await p.have(config_map("packed", binaryData={"web.tgz": base64.b64encode(packed.archive()).decode()}))
        await p.have(config_map("other", data={"a.txt": "a"}))
        sources = Sources(p.client, ChartSettings())

        async def read(name: str) -> Any:
            spec = helm(chartSource={"localSourceRef": {"kind": "ConfigMap", "name": name}})
            return await sources.fetch(await sources.find(spec, "default"))

        assert set((await read("files")).chart.templates) == {"templates/cm.yaml"}
        assert (await read("packed")).chart.values == {"replicas": 1}
        with pytest.raises(SourceError, match="default/other holds no chart: expected a key that ends in"):
            await read("other")
        with pytest.raises(SourceError, match="ConfigMap default/missing does not exist"):
            await read("missing")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"chartSpec": {"chart": "a", "sourceRef": {"kind": "Bucket", "name": "g"}}}, "Bucket is not"),
        (
            {"chartSource": {"remoteSourceSpec": {"bucket": {"endpoint": "g"}}}},
            "remoteSourceSpec.bucket: not supported",
        ),
        ({"chartSource": {"localSourceRef": {"kind": "Bucket", "name": "b"}}}, "Bucket is not supported"),
        ({"chartRef": {"kind": "HelmChart", "name": "a", "namespace": "other"}}, "only default and kcm-system"),
        (
            {"chartSource": {"localSourceRef": {"kind": "Secret", "name": "a", "namespace": "kcm-system"}}},
            "only the namespace of the template",
        ),
        ({"chartSpec": {"chart": "a", "sourceRef": {"kind": "HelmRepository", "name": "x"}, "verify": {}}}, "verify"),
    ],
)
async def test_a_source_that_is_not_supported_is_named_with_what_to_use_instead(
    spec: dict[str, Any], said: str
) -> None:
    async with plane() as p:
        with pytest.raises(SourceError, match=said):
            await Sources(p.client, ChartSettings()).find(helm(**spec), "default")
