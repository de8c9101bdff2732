"""What Prism Central has, read with credentials of the plane: by the protocol of providers, and by the command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from homeport.app.discovery.discover import discover
from homeport.app.discovery.source import NoSource, Wanted
from homeport.cli.main import group
from homeport.infra.error import Denied, ProviderError
from homeport.runtime.testing import virtual
from scenario.nutanix.site import Site, nutanix_site

ADDRESS = "prism-central.example.com"


def secret(password: str = "password") -> dict[str, Any]:
    found = [{"type": "basic_auth", "data": {"prismCentral": {"username": "admin", "password": password}}}]
    meta = {"name": "prism", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"credentials": json.dumps(found)}}


@pytest.mark.parametrize("v4", [True, False], ids=["v4", "v3"])
def test_everything_that_manifests_can_name_is_found_through_both_versions_of_the_api(v4: bool) -> None:
    @virtual
    async def look() -> None:
        async with nutanix_site(start=False, v4=v4) as site:
            await site.have(secret())
            origin, found = await discover(
                site.client,
                site.dial,
                "default",
                Wanted(secret="prism", address=ADDRESS),
            )
            assert origin == "Nutanix AHV, with the credentials of Secret default/prism"
            by_kind = {kind: [each for each in found if each.kind == kind] for kind in {each.kind for each in found}}
            kinds = {"cluster", "image", "network", "host", "failure-domain"}
            assert {*by_kind} == (kinds | {"storage"} if v4 else kinds)  # v3 has no storage containers
            assert {"nutanix-cluster-1", "nutanix-cluster-2"} <= {each.name for each in by_kind["cluster"]}
            images = {each.name: each for each in by_kind["image"]}
            assert images["ubuntu-22.04-kube-v1.30.0"].details["kubernetes"] == "v1.30.0"
            assert images["ubuntu-22.04-kube-v1.30.0"].details["system"] == "ubuntu"
            assert not images["talos-1.9-iso"].usable
            [network] = [each for each in by_kind["network"] if each.name == "vm-network"]
            assert (network.place, network.details["cidr"]) == ("nutanix-cluster-1", "10.0.0.0/22")

    look()


@virtual
async def test_a_wrong_password_and_a_secret_that_does_not_exist_are_named() -> None:
    async with nutanix_site(start=False) as site:
        await site.have(secret("wrong"))
        with pytest.raises(ProviderError) as refused:
            await discover(site.client, site.dial, "default", Wanted(secret="prism", address=ADDRESS))
        assert isinstance(refused.value, Denied) or "credentials" in str(refused.value)
        with pytest.raises(NoSource, match="Secret default/nope does not exist"):
            await discover(site.client, site.dial, "default", Wanted(secret="nope", address=ADDRESS))
        with pytest.raises(NoSource, match="give its address with --address"):
            await discover(site.client, site.dial, "default", Wanted(secret="prism"))
        with pytest.raises(NoSource, match="there is no ProviderConfig"):
            await discover(site.client, site.dial, "default", Wanted())


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Site, list[str]]]:
    async with nutanix_site(start=False) as site:
        await site.have(secret())
        await site.plane.server.serve()
        path, trust = tmp_path / "kubeconfig", tmp_path / "ca.pem"
        path.write_text(site.plane.server.pki.kubeconfig(site.plane.server.url))
        trust.write_bytes(site.dial.ca_pem)
        yield site, ["--kubeconfig", str(path), "--proxy", site.dial.proxy, "--trust", str(trust)]


async def run(*args: str) -> Result:
    """In a thread of its own: the servers need the event loop."""
    return await asyncio.to_thread(CliRunner().invoke, group, list(args))


async def test_the_commands_list_networks_and_images(served: tuple[Site, list[str]]) -> None:
    _, where = served
    source = ["--secret", "prism", "--address", ADDRESS]
    result = await run("discover", "networks", *source, *where)
    assert result.exit_code == 0, result.output
    assert "vm-network" in result.output
    assert "cidr 10.0.0.0/22" in result.output
    assert "ubuntu" not in result.output
    result = await run("discover", *source, *where, "-o", "name")
    assert "image/ubuntu-22.04-kube-v1.30.0" in result.output.splitlines()
    result = await run("image", "list", *source, *where)
    [line] = [each for each in result.output.splitlines() if each.startswith("ubuntu-22.04-kube-v1.30.0")]
    assert line.split() == ["ubuntu-22.04-kube-v1.30.0", "ubuntu", "v1.30.0", "10Gi", "yes"]
    result = await run("image", "list", *source, *where, "-o", "json")
    assert {each["kind"] for each in json.loads(result.output)} == {"image"}


async def test_without_credentials_the_command_says_what_to_name(served: tuple[Site, list[str]]) -> None:
    result = await run("discover", *served[1])
    assert result.exit_code == 1
    assert "use --provider-config, --cluster, --credential or --secret" in result.output


def test_help_of_the_commands_and_options_that_exclude_each_other(tmp_path: Path) -> None:
    text = " ".join(CliRunner().invoke(group, ["discover", "--help"]).output.split())
    assert "List what a hypervisor has that manifests can name" in text
    assert "upload" in CliRunner().invoke(group, ["image", "--help"]).output
    result = CliRunner().invoke(group, ["image", "upload", "x", "--provider-config", "site", "--data", str(tmp_path)])
    assert result.exit_code == 2
    assert "use either --url or --file" in result.output
