"""The VMs of Nodes, against a simulated Prism Central with either version of its API."""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from homeport.api.meta import Resource, Unstructured
from homeport.capi.cloud import Address
from homeport.client.protocol import Key, MergePatch
from homeport.infra.error import Denied, Misconfigured, Missing
from homeport.providers.nutanix.client import Credentials
from homeport.providers.nutanix.cloud.config import parse_config, render_config, render_credentials
from homeport.providers.nutanix.cloud.instance import NutanixCloud, settled, vm_ids
from homeport.providers.nutanix.connection import Connector
from homeport.providers.nutanix.credential import Target
from homeport.providers.nutanix.machine import vm_id
from homeport.providers.nutanix.prism.record import Category, NewNic, NewVm, Prism, Vm
from homeport.runtime.clock import Clock, SystemClock
from homeport.runtime.testing import Plane, plane
from homeport.sim.prism import v3
from homeport.sim.prism.site import Routes
from unit.providers.nutanix.prism_site import Site, prism_site

SECRET = Resource("", "v1", "Secret", "secrets")
BOTH = pytest.mark.parametrize("version", ["v4", "v3"])


def config(port: int = 9440, **more: Any) -> str:
    central = {"address": "127.0.0.1", "port": port, "credentialRef": {"kind": "Secret", "name": "creds"}}
    return json.dumps({"prismCentral": central, **more})


def secret(password: str = "password") -> dict[str, Any]:
    listed = [{"type": "basic_auth", "data": {"prismCentral": {"username": "admin", "password": password}}}]
    return {"data": {"credentials": base64.b64encode(json.dumps(listed).encode()).decode()}}


def node(system: str = "", provider: str = "", *, ready: bool = True) -> Unstructured:
    return Unstructured(
        metadata={"name": "n"},
        spec={"providerID": provider} if provider else {},
        status={
            "nodeInfo": {"systemUUID": system},
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
        },
    )


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with prism_site(tmp_path) as made:
        yield made


@pytest.fixture
async def api() -> AsyncIterator[Plane]:
    async with plane() as p:
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "creds", "namespace": "default"}, **secret()}
        await p.client.create(body, kind=SECRET)
        yield p


async def make(site: Site, prism: Prism, name: str, *categories: Category, on: bool = True) -> str:
    element = next(each for each in await prism.elements() if each.name == "nutanix-cluster-1")
    subnet = next(each for each in await prism.subnets() if each.name == "vm-network")
    new = NewVm(name, element.id, 1, 1, 2 << 30, [], [NewNic(subnet.id)], categories)
    before = {vm.ext_id for vm in site.prism.world.vms}
    await over(prism, await prism.create_vm(new, str(uuid.uuid4())))
    (found,) = {vm.ext_id for vm in site.prism.world.vms} - before
    if on != ((await seen(prism, found)).power == "on"):
        if on:
            await over(prism, await prism.power_on(await seen(prism, found)))
        else:
            site.prism.power.off(found)
    return found


async def seen(prism: Prism, vm_id: str) -> Vm:
    found = await prism.vm(vm_id)
    assert found is not None
    return found


async def over(prism: Prism, task_id: str) -> None:
    async with asyncio.timeout(10):
        while True:
            (task,) = await prism.tasks([task_id])
            if task.status in ("succeeded", "failed"):
                assert task.status == "succeeded", task.error
                return
            await asyncio.sleep(0.01)


class Ahead(SystemClock):
    """A clock that a test may put forward."""

    seconds = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.seconds


def cloud_of(api: Plane, site: Site, version: str = "v4", clock: Clock | None = None, **more: Any) -> NutanixCloud:
    if version == "v3":  # as a Prism Central of 2023 and before
        routes = Routes()
        v3.add_routes(routes)
        site.prism.router = routes.router
    parsed = parse_config(config(site.port, **more), "default")
    clock = clock or SystemClock()
    return NutanixCloud(parsed, Connector(api.client, clock, site.dial), clock)


def calls(site: Site) -> Counter[str]:
    return Counter(f"{each.method} {each.route}" for each in site.prism.journal)


@BOTH
async def test_a_vm_is_identified_by_the_uuid_of_its_firmware(site: Site, api: Plane, version: str) -> None:
    prism = await site.verbs(version)
    found = await make(site, prism, "n")
    cloud = cloud_of(api, site, version)
    instance = await cloud.instance(node(found.upper()))
    assert instance is not None
    assert instance.provider_id == f"nutanix://{found}"
    assert (instance.region, instance.zone) == ("prism-central", "nutanix-cluster-1")
    assert (instance.instance_type, instance.shutdown) == ("ahv-vm", False)
    assert [each.type for each in instance.addresses] == ["InternalIP", "Hostname"]
    assert instance.addresses[-1] == Address("Hostname", "n")
    await cloud.close()


@BOTH
async def test_a_firmware_that_says_something_else_does_not_hide_a_vm_that_the_node_names(
    site: Site, api: Plane, version: str
) -> None:
    prism = await site.verbs(version)
    found = await make(site, prism, "n")
    cloud = cloud_of(api, site, version)
    instance = await cloud.instance(node(str(uuid.uuid4()), f"nutanix://{found}"))
    assert instance is not None
    assert instance.provider_id == f"nutanix://{found}"
    await cloud.close()


@BOTH
async def test_a_new_node_whose_firmware_is_of_no_use_is_found_by_swapped_bytes_or_by_its_name(
    site: Site, api: Plane, version: str
) -> None:
    prism = await site.verbs(version)
    found = await make(site, prism, "n")
    await make(site, prism, "m")
    cloud = cloud_of(api, site, version)
    other = str(uuid.uuid4())
    swapped = str(uuid.UUID(bytes_le=uuid.UUID(found).bytes))
    (address,) = (await seen(prism, found)).addresses
    for system, addresses in ((swapped, []), (other, []), (other, [address]), ("", [])):
        new = node(system)
        new["status"]["addresses"] = [{"type": "InternalIP", "address": each} for each in addresses]
        instance = await cloud.instance(new)
        assert instance is not None, (system, addresses)
        assert instance.provider_id == f"nutanix://{found}"
    stranger = node(other)
    stranger["status"]["addresses"] = [{"type": "InternalIP", "address": "192.0.2.1"}]
    assert await cloud.instance(stranger) is None  # another machine of that name
    assert await cloud.instance(node(other, f"nutanix://{uuid.uuid4()}")) is None  # one that was known, and is gone
    await make(site, prism, "n", on=False)
    assert await cloud.instance(node(other)) is not None  # Nodes are on
    (twin,) = [vm.ext_id for vm in site.prism.world.vms if vm.name == "n" and vm.ext_id != found]
    await over(prism, await prism.power_on(await seen(prism, twin)))
    assert await cloud.instance(node(other)) is None  # it could be either
    await cloud.close()


@BOTH
async def test_a_vm_that_is_off_exists_and_one_that_is_deleted_does_not(site: Site, api: Plane, version: str) -> None:
    prism = await site.verbs(version)
    found = await make(site, prism, "n", on=False)
    cloud = cloud_of(api, site, version)
    instance = await cloud.instance(node(found))
    assert instance is not None
    assert instance.shutdown
    assert await cloud.instance(node(str(uuid.uuid4()))) is None
    await cloud.close()


async def test_addresses_that_are_to_be_ignored_are_no_addresses_of_nodes(site: Site, api: Plane) -> None:
    prism = await site.verbs("v4")
    found = await make(site, prism, "n")
    vm = await seen(prism, found)
    cloud = cloud_of(api, site, ignoredNodeIPs=[vm.addresses[0]])
    instance = await cloud.instance(node(found))
    assert instance is not None
    assert instance.addresses == ()
    await cloud.close()


@BOTH
async def test_zone_and_region_may_come_from_categories_of_the_vm_or_its_cluster(
    site: Site, api: Plane, version: str
) -> None:
    prism = await site.verbs(version)
    rack = await prism.create_category("Rack", "r 7", "for tests")
    cloud = cloud_of(
        api,
        site,
        version,
        topologyDiscovery={
            "type": "Categories",
            "topologyCategories": {"regionCategory": "Environment", "zoneCategory": "Rack"},
        },
    )
    instance = await cloud.instance(node(await make(site, prism, "n", rack)))
    assert instance is not None
    assert (instance.region, instance.zone) == ("Production", "r 7")
    await cloud.close()


async def test_several_values_of_a_category_are_refused(site: Site, api: Plane) -> None:
    prism = await site.verbs("v4")
    values = [await prism.create_category("Rack", each, "for tests") for each in ("a", "b")]
    categories = {"regionCategory": "Environment", "zoneCategory": "Rack"}
    cloud = cloud_of(api, site, topologyDiscovery={"type": "Categories", "topologyCategories": categories})
    with pytest.raises(Misconfigured, match=r"several values of category Rack.*: a, b"):
        await cloud.instance(node(await make(site, prism, "n", *values)))
    await cloud.close()


@BOTH
async def test_labels_say_the_cluster_and_the_host_if_asked_for(site: Site, api: Plane, version: str) -> None:
    prism = await site.verbs(version)
    found = await make(site, prism, "n")
    cloud = cloud_of(api, site, version, enableCustomLabeling=True)
    instance = await cloud.instance(node(found))
    assert instance is not None
    assert instance.labels["nutanix.com/prism-element-name"] == "nutanix-cluster-1"
    assert instance.labels["nutanix.com/prism-host-name"].startswith("nutanix-cluster-1-host-")
    assert set(instance.labels) == {
        f"nutanix.com/prism-{each}" for each in ("element-uuid", "element-name", "host-uuid", "host-name")
    }
    await cloud.close()


async def test_many_nodes_that_are_well_cost_one_list(site: Site, api: Plane) -> None:
    prism = await site.verbs("v4")
    ids = [await make(site, prism, f"n{number}", on=False) for number in range(12)]
    clock = Ahead()
    cloud = cloud_of(api, site, clock=clock)
    await asyncio.gather(*(cloud.instance(node(each)) for each in ids))
    before = calls(site)
    clock.seconds = 300.0
    for _ in range(3):
        await asyncio.gather(*(cloud.instance(node(each, f"nutanix://{each}")) for each in ids))
    assert calls(site) - before == Counter({"GET /api/vmm/{v}/ahv/config/vms": 1})
    await cloud.close()


async def test_an_unresponsive_node_is_read_again(site: Site, api: Plane) -> None:
    prism = await site.verbs("v4")
    found = await make(site, prism, "n")
    clock = Ahead()
    cloud = cloud_of(api, site, clock=clock)
    assert await cloud.instance(node(found)) is not None
    await over(prism, await prism.delete_vm(await seen(prism, found)))
    clock.seconds = 5.0
    well, lost = node(found, f"nutanix://{found}"), node(found, f"nutanix://{found}", ready=False)
    assert await cloud.instance(well) is not None
    assert await cloud.instance(lost) is None
    await cloud.close()


async def test_changed_credentials_are_used_without_a_restart(site: Site, api: Plane) -> None:
    prism = await site.verbs("v4")
    found = await make(site, prism, "n")
    key = Key("default", "creds")
    await api.client.patch(SECRET, key, MergePatch(secret("wrong")))
    cloud = cloud_of(api, site)
    with pytest.raises(Denied):
        await cloud.instance(node(found))
    await api.client.patch(SECRET, key, MergePatch(secret()))
    assert await cloud.instance(node(found)) is not None
    await cloud.close()


async def test_a_node_without_machine_information_is_reported(site: Site, api: Plane) -> None:
    cloud = cloud_of(api, site)
    with pytest.raises(Missing, match="Node n has neither systemUUID nor providerID"):
        await cloud.instance(node())
    await cloud.close()


@pytest.mark.parametrize(
    ("provider", "ready", "taint", "expected"),
    [
        ("nutanix://1", True, "", True),
        ("", True, "", False),
        ("nutanix://1", False, "", False),
        ("nutanix://1", True, "node.cloudprovider.kubernetes.io/shutdown", False),
        ("nutanix://1", True, "node.cloudprovider.kubernetes.io/uninitialized", False),
        ("nutanix://1", True, "node.kubernetes.io/unschedulable", True),
    ],
)
def test_only_nodes_that_are_well_are_content_with_old_news(
    provider: str, ready: bool, taint: str, expected: bool
) -> None:
    found = node("1", provider, ready=ready)
    if taint:
        found["spec"]["taints"] = [{"key": taint, "effect": "NoSchedule"}]
    assert settled(found) is expected


@pytest.mark.parametrize(
    ("system", "provider", "ids"),
    [
        ("ABC", "", ["abc"]),
        ("abc", "nutanix://abc", ["abc"]),
        ("abc", "nutanix://def", ["abc", "def"]),
        ("", "nutanix://def", ["def"]),
        ("", "aws:///x", []),
    ],
)
def test_ids_come_from_the_firmware_first(system: str, provider: str, ids: list[str]) -> None:
    assert vm_ids(node(system, provider)) == ids


CENTRAL = {"address": "pc", "credentialRef": {"kind": "Secret", "name": "s"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", "must be an object, not a list"),
        ({}, "prismCentral.address: is required"),
        ({"prismCentral": "pc"}, "prismCentral: must be an object, not a string"),
        ({"prismCentral": {**CENTRAL, "port": "x"}}, "prismCentral.port"),
        ({"prismCentral": {**CENTRAL, "insecure": "no"}}, "prismCentral.insecure"),
        ({"prismCentral": {"address": "pc"}}, "prismCentral.credentialRef.name: is required"),
        ({"prismCentral": {**CENTRAL, "additionalTrustBundle": {"kind": "X"}}}, "additionalTrustBundle.kind"),
        ({"prismCentral": {**CENTRAL, "additionalTrustBundle": {"kind": "String"}}}, "additionalTrustBundle.data"),
        ({"prismCentral": CENTRAL, "topologyDiscovery": {"type": "X"}}, "topologyDiscovery.type"),
        (
            {"prismCentral": CENTRAL, "topologyDiscovery": {"type": "Categories"}},
            "topologyDiscovery.topologyCategories.regionCategory",
        ),
        ({"prismCentral": CENTRAL, "ignoredNodeIPs": ["10.0.0.1", "x"]}, r"ignoredNodeIPs\[1\]: 'x'"),
        ({"prismCentral": CENTRAL, "ignoredNodeIPs": "10.0.0.1"}, "ignoredNodeIPs: must be a list"),
        ({"prismCentral": CENTRAL, "enableCustomLabeling": "yes"}, "enableCustomLabeling"),
    ],
)
def test_a_configuration_that_can_not_be_used_names_the_field(text: Any, message: str) -> None:
    with pytest.raises(Misconfigured, match=message):
        parse_config(text if isinstance(text, str) else json.dumps(text), "kube-system")


@pytest.mark.parametrize(
    ("entry", "address", "ignored"),
    [
        ("10.0.0.5", "10.0.0.5", True),
        ("10.0.0.5", "10.0.0.6", False),
        ("10.0.0.0/24", "10.0.0.255", True),
        ("10.0.0.5-10.0.0.9", "10.0.0.9", True),
        ("10.0.0.5-10.0.0.9", "10.0.0.10", False),
        ("fd00::/64", "10.0.0.1", False),
        ("fd00::/64", "fd00::1", True),
    ],
)
def test_ignored_addresses_are_single_ones_ranges_and_networks(entry: str, address: str, ignored: bool) -> None:
    found = parse_config(json.dumps({"prismCentral": CENTRAL, "ignoredNodeIPs": [entry]}), "kube-system")
    assert found.ignores(address) is ignored


def test_a_secret_without_a_namespace_is_where_the_manager_runs() -> None:
    found = parse_config(json.dumps({"prismCentral": CENTRAL}), "here").central
    assert found.credential_ref is not None
    assert (found.credential_ref.namespace, found.port, found.insecure) == ("here", 9440, False)


def test_what_is_rendered_can_be_read() -> None:
    target = Target("pc.example.com", 9441, True, Key("default", "creds"))
    text = render_config(
        target, b"PEM", secret="s", namespace="kube-system", ignored=["10.0.0.100"], pools={"default": "10.0.0.1"}
    )
    found = parse_config(text, "other")
    assert (found.central.address, found.central.port, found.central.insecure) == ("pc.example.com", 9441, True)
    assert found.central.additional_trust_bundle is not None
    assert found.central.additional_trust_bundle.data == "PEM"
    assert found.ignores("10.0.0.100")
    assert found.pools == {"default": "10.0.0.1"}


@pytest.mark.parametrize(
    ("credentials", "listed"),
    [
        (Credentials("u", "p"), {"type": "basic_auth", "data": {"prismCentral": {"username": "u", "password": "p"}}}),
        (Credentials(api_key="k"), {"type": "api_key", "data": {"prismCentral": {"apiKey": "k"}}}),
    ],
)
def test_credentials_are_rendered_as_a_secret_has_them(credentials: Credentials, listed: Any) -> None:
    assert json.loads(render_credentials(credentials)) == [listed]


def test_a_provider_id_with_the_prism_central_names_the_same_vm() -> None:
    central, vm = str(uuid.uuid4()), str(uuid.uuid4())
    assert vm_ids(node(provider=f"nutanix://{central}/{vm}")) == [vm]
    assert vm_ids(node(provider=f"nutanix://{vm}")) == [vm]
    assert vm_id(f"nutanix://{central}/{vm}") == vm_id(f"nutanix://{vm}") == vm
    assert vm_id("nutanix://one-m1") == ""
