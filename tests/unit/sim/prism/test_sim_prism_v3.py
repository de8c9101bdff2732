"""v3 and v4 are two views of one world."""

from __future__ import annotations

import base64

import pytest

from homeport.sim.engine.progress import Progress
from homeport.sim.prism.pace import Pace
from homeport.sim.prism.prism import Prism
from unit.sim.prism.prism_caller import VMS, Caller

V3 = "/api/nutanix/v3"


@pytest.fixture
def call() -> Caller:
    return Caller(Prism())


def intent(call: Caller, name: str, **resources: object) -> dict[str, object]:
    return {
        "metadata": {"kind": "vm", "categories": {"Environment": "Dev"}},
        "spec": {
            "name": name,
            "cluster_reference": {"kind": "cluster", "uuid": call.cluster()},
            "resources": {
                "num_sockets": 2,
                "num_vcpus_per_socket": 2,
                "memory_size_mib": 4096,
                "power_state": "ON",
                "disk_list": [
                    {"data_source_reference": {"kind": "image", "uuid": call.image()}, "disk_size_mib": 20480}
                ],
                "nic_list": [{"subnet_reference": {"kind": "subnet", "uuid": call.subnet()}}],
                **resources,
            },
        },
    }


@pytest.mark.parametrize("kind", ["clusters", "subnets", "images", "vms", "projects", "hosts", "tasks"])
async def test_the_lists_of_the_guides_work_as_written(call: Caller, kind: str) -> None:
    answer = await call("POST", f"{V3}/{kind}/list", {"length": 100})
    assert answer.status == 200
    meta = answer.body["metadata"]
    assert meta["kind"] == kind.removesuffix("s")
    assert meta["total_matches"] == meta["length"] == len(answer.body["entities"])


async def test_a_vm_made_over_v3_is_the_same_over_v4(call: Caller) -> None:
    script = base64.b64encode(b"#cloud-config\n").decode()
    made = await call(
        "POST", f"{V3}/vms", intent(call, "web", guest_customization={"cloud_init": {"user_data": script}})
    )
    assert (made.status, made.body["status"]["state"]) == (202, "PENDING")
    ext_id, task = made.body["metadata"]["uuid"], made.body["status"]["execution_context"]["task_uuid"]
    assert (await call("GET", f"{V3}/tasks/{task}")).body["status"] == "SUCCEEDED"
    vm, _ = await call.vm(ext_id)
    assert (vm["name"], vm["powerState"], vm["numSockets"], vm["numCoresPerSocket"]) == ("web", "ON", 2, 2)
    old = (await call("GET", f"{V3}/vms/{ext_id}")).body
    assert old["status"]["execution_context"]["task_uuid"] == [task]
    assert old["metadata"]["categories_mapping"] == {"Environment": ["Dev"]}
    assert len(old["status"]["resources"]["disk_list"]) == 2  # the system disk, and the config drive
    address = old["status"]["resources"]["nic_list"][0]["ip_endpoint_list"][0]["ip"]
    assert vm["nics"][0]["networkInfo"]["ipv4Config"]["ipAddress"]["value"] == address
    assert vm["memorySizeBytes"] == old["status"]["resources"]["memory_size_mib"] * 1024**2


async def test_a_vm_made_over_v4_is_the_same_over_v3_and_deleted_there(call: Caller) -> None:
    ext_id = await call.make("web")
    old = (await call("GET", f"{V3}/vms/{ext_id}")).body
    assert old["spec"]["resources"]["num_sockets"] == 2
    assert old["metadata"]["project_reference"]["name"] == "_internal"
    assert (await call("DELETE", f"{V3}/vms/{ext_id}")).body["status"]["state"] == "DELETE_PENDING"
    assert (await call("GET", f"{VMS}/{ext_id}")).status == 404


async def test_an_update_keeps_devices_and_refuses_an_old_spec_version(call: Caller) -> None:
    ext_id = await call.make("web")
    body = (await call("GET", f"{V3}/vms/{ext_id}")).body
    before = body["spec"]["resources"]
    body.pop("status")
    body["spec"]["resources"]["num_sockets"] = 4
    body["spec"]["resources"]["power_state"] = "ON"
    body["spec"]["resources"]["disk_list"].append({"disk_size_mib": 1024})
    assert (await call("PUT", f"{V3}/vms/{ext_id}", body)).status == 202
    after = (await call("GET", f"{V3}/vms/{ext_id}")).body
    assert after["metadata"]["spec_version"] == 1
    assert after["spec"]["resources"]["power_state"] == "ON"
    assert [disk["uuid"] for disk in after["spec"]["resources"]["disk_list"]][:1] == [before["disk_list"][0]["uuid"]]
    assert after["spec"]["resources"]["nic_list"][0]["mac_address"] == before["nic_list"][0]["mac_address"]
    stale = await call("PUT", f"{V3}/vms/{ext_id}", body)
    assert (stale.status, stale.body["message_list"][0]["reason"]) == (409, "CONCURRENT_REQUESTS_NOT_ALLOWED")
    assert (await call("PUT", f"{V3}/vms/{ext_id}", after)).status == 202


async def test_lists_filter_sort_and_page(call: Caller) -> None:
    for name in ("b", "a", "c"):
        await call.make(name, nics=[])
    found = (await call("POST", f"{V3}/vms/list", {"kind": "vm", "filter": "vm_name==a"})).body
    assert [each["spec"]["name"] for each in found["entities"]] == ["a"]
    page = {"kind": "vm", "sort_attribute": "name", "sort_order": "DESCENDING", "length": 2, "offset": 1}
    body = (await call("POST", f"{V3}/vms/list", page)).body
    assert [each["spec"]["name"] for each in body["entities"]] == ["b", "a"]
    assert (body["metadata"]["total_matches"], body["metadata"]["length"]) == (3, 2)


@pytest.mark.parametrize(
    "body", [{"length": 0}, {"length": 501}, {"offset": -1}, {"kind": "image"}, {"filter": "a b"}, {"length": "x"}]
)
async def test_a_list_that_makes_no_sense_is_refused(call: Caller, body: dict[str, object]) -> None:
    answer = await call("POST", f"{V3}/vms/list", body)
    assert (answer.status, answer.body["state"]) == (422, "ERROR")
    assert answer.body["message_list"][0]["details"]


async def test_errors_are_as_v3_writes_them(call: Caller) -> None:
    missing = await call("GET", f"{V3}/vms/no-such")
    assert missing.status == 404
    assert missing.body["message_list"][0]["reason"] == "ENTITY_NOT_FOUND"
    nobody = await Caller(call.prism)("GET", f"{V3}/users/me", auth=False)
    assert nobody.body["message_list"][0]["reason"] == "AUTHENTICATION_REQUIRED"
    assert "WWW-Authenticate" in nobody.headers


async def test_the_caller_is_known_by_name(call: Caller) -> None:
    assert (await call("GET", f"{V3}/users/me")).body["status"]["name"] == "admin"


async def test_categories_of_both_apis_are_the_same(call: Caller) -> None:
    assert (await call("PUT", f"{V3}/categories/team", {"name": "team"})).status == 200
    assert (await call("PUT", f"{V3}/categories/team/blue", {"value": "blue"})).status == 200
    listed = await call("GET", "/api/prism/v4.3/config/categories", query="$filter=key eq 'team'")
    assert [each["value"] for each in listed.body["data"]] == ["blue"]
    assert (await call("DELETE", f"{V3}/categories/team")).status == 409
    assert (await call("DELETE", f"{V3}/categories/team/blue")).status == 200
    assert (await call("DELETE", f"{V3}/categories/team")).status == 200
    assert (await call("GET", f"{V3}/categories/team")).status == 404


async def test_vms_are_found_by_category(call: Caller) -> None:
    await call("POST", f"{V3}/vms", intent(call, "web"))
    query = {"category_filter": {"type": "CATEGORIES_MATCH_ALL", "params": {"Environment": ["Dev"]}}}
    results = (await call("POST", f"{V3}/category/query", query)).body["results"]
    assert results[0]["kind_reference_list"][0]["name"] == "web"


async def test_a_failed_task_says_why_in_both_apis() -> None:
    call = Caller(Prism())
    made = await call("POST", f"{V3}/vms", intent(call, "big", memory_size_mib=1024 * 1024))
    task = made.body["status"]["execution_context"]["task_uuid"]
    old = (await call("GET", f"{V3}/tasks/{task}")).body
    new = (await call("GET", f"/api/prism/v4.3/config/tasks/{task}")).body["data"]
    assert old["status"] == new["status"] == "FAILED"
    assert old["error_detail"] == new["errorMessages"][0]["message"]


async def test_tasks_are_polled_together() -> None:
    call = Caller(Prism(pace=Pace(default=Progress(reads=2))))
    made = await call("POST", f"{V3}/vms", intent(call, "web"))
    task = made.body["status"]["execution_context"]["task_uuid"]
    states = []
    for _ in range(2):
        polled = await call("POST", f"{V3}/tasks/poll", {"task_uuid_list": [task]})
        states.append(polled.body["task_list"][0]["status"])
    assert states == ["RUNNING", "SUCCEEDED"]


async def test_images_and_subnets_are_made_and_removed(call: Caller) -> None:
    image = {"metadata": {"kind": "image"}, "spec": {"name": "new", "resources": {"image_type": "DISK_IMAGE"}}}
    uuid = (await call("POST", f"{V3}/images", image)).body["metadata"]["uuid"]
    assert (await call("GET", f"/api/vmm/v4.3/content/images/{uuid}")).body["data"]["name"] == "new"
    assert (await call("DELETE", f"{V3}/images/{uuid}")).status == 202
    assert (await call("GET", f"{V3}/images/{uuid}")).status == 404
    config = {
        "subnet_ip": "10.9.0.0",
        "prefix_length": 24,
        "default_gateway_ip": "10.9.0.1",
        "pool_list": [{"range": "10.9.0.10 10.9.0.20"}],
    }
    subnet = {
        "metadata": {"kind": "subnet"},
        "spec": {
            "name": "nine",
            "cluster_reference": {"kind": "cluster", "uuid": call.cluster()},
            "resources": {"subnet_type": "VLAN", "vlan_id": 9, "ip_config": config},
        },
    }
    uuid = (await call("POST", f"{V3}/subnets", subnet)).body["metadata"]["uuid"]
    shown = (await call("GET", f"/api/networking/v4.3/config/subnets/{uuid}")).body["data"]
    assert shown["ipUsage"]["numFreeIPs"] == 11
