"""In simulation, charts of templates come from the registries of the simulated network, through its proxy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from homeport.api.k0rdent.v1beta1.template import HelmSpec
from homeport.capi.chartsettings import ChartSettings
from homeport.client.dial import DialOptions
from homeport.helm.errors import SourceError
from homeport.platforms.k0rdent.flux import definitions
from homeport.platforms.k0rdent.source import Sources
from homeport.runtime.testing import establish, plane
from homeport.sim.network import Proxy
from unit.sim.registry.test_sim_registry import OCI, site


def repository(name: str, url: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "HelmRepository",
        "metadata": meta,
        "spec": {"url": url},
    }


def chart(name: str, source: str, version: str = "") -> HelmSpec:
    ref = {"kind": "HelmRepository", "name": source}
    return msgspec.convert({"chartSpec": {"chart": name, "version": version, "sourceRef": ref}}, HelmSpec)


async def test_charts_of_a_repository_and_of_a_registry_are_fetched_from_the_simulated_network(tmp_path: Path) -> None:
    async with site(tmp_path / "ca") as s, plane() as p:
        proxy = Proxy(s.network)
        url = await proxy.start()
        try:
            dial = DialOptions(url, (tmp_path / "ca" / "ca.crt").read_bytes())
            sources = Sources(p.client, ChartSettings(dial=dial))
            await establish(p.client, *definitions())
            await p.have(repository("oci", OCI), repository("traefik", "https://traefik.github.io/charts"))
            found = await sources.fetch(await sources.find(chart("kcm", "oci", "1.x"), "default"))
            assert found.version == "1.10.0"
            found = await sources.fetch(await sources.find(chart("traefik", "traefik", "40.3.0"), "default"))
            assert (found.version, found.chart.name) == ("40.3.0", "traefik")
            await p.have(repository("unknown", "https://charts.example.com"))
            with pytest.raises(SourceError, match=r"only simulated hosts answer: use --charts"):
                await sources.fetch(await sources.find(chart("a", "unknown"), "default"))
            with pytest.raises(SourceError, match=r"9\.9\.9"):
                await sources.fetch(await sources.find(chart("traefik", "traefik", "9.9.9"), "default"))
        finally:
            await proxy.close()
