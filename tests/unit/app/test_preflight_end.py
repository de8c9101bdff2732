"""Preflights of a cluster that exists, at a simulated Prism Central."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.app.platform import chosen
from homeport.app.rehearsal.copy import copy_plane
from homeport.app.rehearsal.preflight import CheckResult, preflight
from homeport.client.protocol import Key, MergePatch
from homeport.machinery.yaml import load_all
from homeport.runtime.testing import plane
from unit.providers.nutanix.prism_site import Site, prism_site

EXAMPLE = Path(__file__).parents[3] / "examples/02-cluster/cluster.yaml"
HARBOUR = Key("default", "harbour")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with prism_site(tmp_path) as made:
        yield made


async def checks(site: Site, password: str) -> list[CheckResult]:
    """Of the example, whose infrastructure was provisioned before."""
    async with plane(crds=chosen().definitions()) as p:
        for each in load_all(EXAMPLE.read_text()):
            if each["kind"] == "NutanixCluster":
                each["spec"]["prismCentral"] |= {"address": "127.0.0.1", "port": site.port}
            if each["kind"] == "Secret":
                each = secret(each, password)
            await p.have(each)
        provisioned = MergePatch({"status": {"ready": True, "initialization": {"provisioned": True}}})
        await p.client.patch(NutanixCluster.__resource__, HARBOUR, provisioned, subresource="status")
        running = MergePatch({"status": {"initialization": {"infrastructureProvisioned": True}}})
        await p.client.patch(Cluster.__resource__, HARBOUR, running, subresource="status")
        copy = await copy_plane(p.client, ["default"])
    return await preflight(copy, [], "default", site.dial, HARBOUR)


def secret(found: dict[str, object], password: str) -> dict[str, object]:
    login = {"prismCentral": {"username": "admin", "password": password}}
    data = json.dumps([{"type": "basic_auth", "data": login}]).encode()
    return {**found, "stringData": None, "data": {"credentials": base64.b64encode(data).decode()}}


async def test_a_wrong_password_ends_the_preflight_of_a_cluster_that_exists_at_once(site: Site) -> None:
    async with asyncio.timeout(30.0):
        [found] = await checks(site, "wrong")
    assert (found.check, found.reason) == ("PrismClientInit", "AccessDenied")
    assert "rejects the credentials of Secret default/harbour-prism" in found.message


async def test_the_right_password_passes_all_checks(site: Site) -> None:
    found = await checks(site, "password")
    assert {each.check for each in found} >= {"PrismClientInit", "ReferencesResolved"}
    assert [each.message for each in found if not each.ok] == []


async def checks_of(site: Site, wrong: str, right: str) -> list[CheckResult]:
    """Of the example as a new file, with one reference mistyped."""
    text = EXAMPLE.read_text()
    assert right in text
    objects = load_all(text.replace(right, wrong, 1))
    for each in objects:
        if each["kind"] == "NutanixCluster":
            each["spec"]["prismCentral"] |= {"address": "127.0.0.1", "port": site.port}
    async with plane(crds=chosen().definitions()) as p:
        copy = await copy_plane(p.client, ["default"])
    async with asyncio.timeout(45.0):
        return await preflight(copy, objects, "default", site.dial)


async def test_a_template_with_a_mistyped_name_ends_the_preflight(site: Site) -> None:
    right = "NutanixMachineTemplate, name: harbour-control-plane}"
    found = await checks_of(site, right.replace("control-plane", "controlplane"), right)
    failed = [each for each in found if not each.ok]
    assert [(each.kind, each.check) for each in failed] == [("NutanixCluster", "ReferencesResolved")]
    assert "did you mean 'harbour-control-plane'?" in failed[0].message


async def test_an_infrastructure_with_a_mistyped_name_ends_the_preflight(site: Site) -> None:
    right = "kind: NutanixCluster, name: harbour}"
    found = await checks_of(site, right.replace("harbour", "harbor"), right)
    failed = [(each.kind, each.name, each.message) for each in found if not each.ok]
    text = "spec.infrastructureRef: NutanixCluster harbor does not exist; did you mean 'harbour'?"
    assert failed == [("Cluster", "harbour", text)]
