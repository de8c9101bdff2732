"""No request makes the simulator stumble: whatever comes is answered or refused."""

from __future__ import annotations

import asyncio
import random
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from homeport.sim.prism.prism import Prism
from unit.sim.prism.prism_caller import Caller

NAMES = re.findall(
    r"\w+",
    """name spec metadata resources cluster cluster_reference extId uuid nics disks cdRoms gpus backingInfo networkInfo
subnet diskAddress busType index dataSource reference imageExtId categories categories_mapping key value description
guestCustomization config cloudInitScript guest_customization cloud_init user_data disk_list nic_list device_properties
disk_address subnet_reference ipConfig ipv4 poolList startIp endIp ip_config pool_list range ipAddresses startIpAddress count
length offset filter kind sort_attribute task_uuid_list category_filter params customAttributes numSockets
memorySizeBytes diskSizeBytes clusterReference boot_config bootConfig bootOrder spec_version use_categories_mapping
project_reference source checksum hexDigest type dhcpOptions domainNameServers clientContext host owner""",
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.just(2**62),
    st.just(1.5),
    st.sampled_from(["", "x", "10.0.0.1", "vm"]),
)
BODIES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=5)),
    max_leaves=12,
)


def routes() -> list[tuple[str, str]]:
    return sorted((route.method, route.template) for route in Prism().router)


async def every_route(body: Any, seed: int) -> None:
    call = Caller(Prism())
    vm = await call.make("web")
    ids = [vm, call.cluster(), call.subnet(), call.image(), "Environment", "Production", "none", "ZXJnb24=:x"]
    rng = random.Random(seed)
    for method, template in routes():
        path = template.replace("{v}", f"v4.{rng.randrange(6)}")
        while "{" in path:
            head, _, rest = path.partition("{")
            path = f"{head}{rng.choice(ids)}{rest.partition('}')[2]}"
        found = call.prism.world.vms.get(vm)
        etag = f"YXBwbGljYXRpb24vanNvbg==:{found.version if found else 1}"
        answer = await call(method, path, body, if_match=etag, ntnx_request_id="7c1fd7f6-8b9a-4f55-9d0a-0f6c1d0b5b11")
        assert 200 <= answer.status < 600, f"{method} {path}"
        assert answer.status != 500, f"{method} {path}: {answer.body}"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=BODIES, seed=st.integers(0, 1000))
def test_odd_bodies_are_answered_or_refused(body: Any, seed: int) -> None:
    asyncio.run(every_route(body, seed))


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"categories": 5}, "spec": {"name": "x", "resources": {}, "cluster_reference": {}}},
        {
            "metadata": {"use_categories_mapping": True, "categories_mapping": {"a": 3}},
            "spec": {"name": "x", "resources": {}},
        },
        {"category_filter": {"params": {"a": None}}},
        {"category_filter": {"params": 3}},
        {"spec": {"name": "n", "resources": {"ip_config": {"subnet_ip": "x", "prefix_length": 99}}}, "metadata": {}},
        {"name": "n", "clusterReference": "x", "ipConfig": [{"ipv4": {"ipSubnet": {"ip": {"value": "x"}}}}]},
        {"startIpAddress": {"ipv4": {"value": "255.255.255.255"}}, "count": 5},
        {"count": 10**9},
    ],
)
async def test_bodies_that_once_were_trouble(body: Any) -> None:
    await every_route(body, 0)


def bases(call: Caller) -> list[tuple[str, str, dict[str, Any]]]:
    """Requests that are right, to be made wrong in one place."""
    cluster, subnet, image = call.cluster(), call.subnet(), call.image()
    address = {"value": "10.9.0.0", "prefixLength": 32}
    ipv4 = {
        "ipSubnet": {"ip": address, "prefixLength": 24},
        "defaultGatewayIp": {"value": "10.9.0.1"},
        "poolList": [{"startIp": {"value": "10.9.0.5"}, "endIp": {"value": "10.9.0.9"}}],
    }
    machine = call.vm_body(
        "odd",
        cdRoms=[{"diskAddress": {"busType": "IDE", "index": 0}}],
        gpus=[{"mode": "VIRTUAL", "deviceId": 557, "vendor": "NVIDIA", "name": "x"}],
        categories=[],
        bootConfig={"$objectType": "vmm.v4.ahv.config.UefiBoot", "isSecureBootEnabled": True, "bootOrder": ["DISK"]},
        guestCustomization={"config": {"metadata": "eA==", "cloudInitScript": {"value": "eA=="}}},
        customAttributes=["a"],
        vtpmConfig={"isVtpmEnabled": True},
    )
    intent = {
        "metadata": {"kind": "vm", "spec_version": 0, "categories": {"Environment": "Dev"}},
        "spec": {
            "name": "odd",
            "cluster_reference": {"kind": "cluster", "uuid": cluster},
            "resources": {
                "num_sockets": 1,
                "memory_size_mib": 1024,
                "power_state": "ON",
                "boot_config": {"boot_type": "UEFI", "boot_device_order_list": ["DISK"]},
                "disk_list": [
                    {
                        "data_source_reference": {"kind": "image", "uuid": image},
                        "disk_size_mib": 20480,
                        "device_properties": {
                            "device_type": "DISK",
                            "disk_address": {"adapter_type": "SCSI", "device_index": 0},
                        },
                    }
                ],
                "nic_list": [{"subnet_reference": {"uuid": subnet}, "ip_endpoint_list": [{"ip": "10.0.0.130"}]}],
                "gpu_list": [{"vendor": "NVIDIA", "mode": "VIRTUAL", "device_id": 557}],
                "guest_customization": {"cloud_init": {"user_data": "eA=="}},
            },
        },
    }
    net = {
        "metadata": {"kind": "subnet"},
        "spec": {
            "name": "odd",
            "cluster_reference": {"uuid": cluster},
            "resources": {
                "subnet_type": "VLAN",
                "vlan_id": 9,
                "ip_config": {
                    "subnet_ip": "10.9.0.0",
                    "prefix_length": 24,
                    "pool_list": [{"range": "10.9.0.1 10.9.0.9"}],
                },
            },
        },
    }
    v4_subnet = {"name": "odd", "subnetType": "VLAN", "clusterReference": cluster, "ipConfig": [{"ipv4": ipv4}]}
    group = {"name": "odd", "clusterReference": cluster, "disks": [{"diskSizeBytes": 1024, "index": 0}]}
    return [
        ("POST", "/api/vmm/v4.3/ahv/config/vms", machine),
        ("POST", "/api/nutanix/v3/vms", intent),
        ("POST", "/api/nutanix/v3/subnets", net),
        ("POST", "/api/networking/v4.3/config/subnets", v4_subnet),
        ("POST", "/api/volumes/v4.3/config/volume-groups", group),
        ("POST", "/api/vmm/v4.3/content/images", {"name": "odd", "type": "DISK_IMAGE", "source": {"url": "x"}, "clusterLocationExtIds": [cluster]}),
        ("POST", f"/api/networking/v4.3/config/subnets/{subnet}/addresses/$actions/reserve", {"count": 2, "clientContext": "c"}),
    ]  # fmt: skip


def spoil(value: Any, rng: random.Random, leaf: Any) -> Any:
    """The same, with one part replaced."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(sorted(value))
        return {**value, key: spoil(value[key], rng, leaf)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        return [*value[:at], spoil(value[at], rng, leaf), *value[at + 1 :]]
    return leaf


async def spoiled(seed: int, leaf: Any) -> None:
    rng = random.Random(seed)
    call = Caller(Prism())
    for method, path, body in bases(call):
        right = await call(method, path, body, ntnx_request_id="7c1fd7f6-8b9a-4f55-9d0a-0f6c1d0b5b11")
        assert right.status == 202, right.body
        for number in range(8):
            wrong = spoil(body, rng, leaf)
            answer = await call(method, path, wrong, ntnx_request_id=f"7c1fd7f6-8b9a-4f55-9d0a-0f6c1d0b5b1{number + 2}")
            assert answer.status in (202, 400, 404, 409, 422), f"{path} {wrong}: {answer.body}"
    for kind in ("vms", "subnets", "images"):
        listed = await call("POST", f"/api/nutanix/v3/{kind}/list", {"length": 100})
        assert listed.status == 200
    assert (await call("GET", "/api/vmm/v4.3/ahv/config/vms")).status == 200
    assert (await call("GET", "/api/networking/v4.3/config/subnets")).status == 200


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10**6), leaf=BODIES)
def test_a_request_that_is_wrong_in_one_place_is_refused_or_harmless(seed: int, leaf: Any) -> None:
    asyncio.run(spoiled(seed, leaf))
