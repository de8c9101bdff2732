"""Lists of v4: filters, order, pages, totals; and the envelope around them."""

from __future__ import annotations

import pytest

from homeport.sim.prism.prism import Prism
from homeport.sim.prism.world import default_world
from unit.sim.prism.prism_caller import VMS, Caller

IMAGES = "/api/vmm/v4.3/content/images"

IMAGE_COUNT = len(default_world().images)


@pytest.fixture
def call() -> Caller:
    return Caller(Prism())


async def test_pages_cover_everything_once_with_exact_totals(call: Caller) -> None:
    seen = []
    for page in range(4):
        body = (await call("GET", IMAGES, query=f"$page={page}&$limit=3")).body
        assert body["metadata"]["totalAvailableResults"] == IMAGE_COUNT
        seen += [image["extId"] for image in body["data"]]
    assert len(seen) == len(set(seen)) == IMAGE_COUNT


async def test_links_lead_to_the_other_pages(call: Caller) -> None:
    body = (await call("GET", IMAGES, query="$page=1&$limit=3")).body
    links = {link["rel"]: link["href"] for link in body["metadata"]["links"]}
    assert set(links) == {"first", "self", "last", "prev", "next"}
    assert "$page=2" in links["next"]
    assert links["last"].endswith(f"$page={(IMAGE_COUNT - 1) // 3}&$limit=3")


async def test_a_total_counts_what_the_filter_leaves(call: Caller) -> None:
    body = (await call("GET", IMAGES, query="$limit=1&$filter=type eq Vmm.Content.ImageType'ISO_IMAGE'")).body
    assert (len(body["data"]), body["metadata"]["totalAvailableResults"]) == (1, 2)


@pytest.mark.parametrize(
    "query",
    ["$limit=0", "$limit=101", "$limit=x", "$page=-1", "$filter=", "$filter=colour eq 'red'", "$filter=name eq", "$orderby=x",
     "$orderby=name up", "$select=colour"],
)  # fmt: skip
async def test_a_query_that_makes_no_sense_is_a_schema_error(call: Caller, query: str) -> None:
    answer = await call("GET", IMAGES, query=query)
    if query == "$filter=":  # an empty option is no option
        assert answer.status == 200
        return
    assert answer.status == 400, query
    assert answer.body["data"]["error"]["validationErrorMessages"][0]["location"] == "query"


async def test_only_selected_fields_come_back(call: Caller) -> None:
    item = (await call("GET", IMAGES, query="$select=name,type&$limit=1")).body["data"][0]
    assert set(item) == {"name", "type", "extId", "$objectType", "$reserved"}


async def test_an_empty_list_has_no_data_where_a_projection_could_be_meant(call: Caller) -> None:
    empty = (await call("GET", VMS)).body
    assert empty["data"] == []
    none = (await call("GET", "/api/prism/v4.3/config/categories", query="$filter=key eq 'none'")).body
    assert "data" not in none
    assert none["metadata"]["totalAvailableResults"] == 0


@pytest.mark.parametrize("minor", range(5))
async def test_every_version_is_served_and_says_which_it_is(call: Caller, minor: int) -> None:
    body = (await call("GET", f"/api/vmm/v4.{minor}/content/images", query="$limit=1")).body
    assert body["$reserved"] == body["data"][0]["$reserved"] == {"$fv": f"v4.r{minor}"}
    assert body["$dataItemDiscriminator"] == "List<vmm.v4.content.Image>"


async def test_a_version_that_does_not_exist_is_not_found(call: Caller) -> None:
    assert (await call("GET", "/api/vmm/v4.9/content/images")).status == 404
    assert (await call("GET", "/api/vmm/v5.0/content/images")).status == 404


@pytest.mark.parametrize(("newest", "offered"), [(4, "v4.3"), (2, "v4.2")])
async def test_clients_are_offered_the_newest_version(newest: int, offered: str) -> None:
    call = Caller(Prism(newest_minor=newest))
    assert (await call("OPTIONS", "/api/vmm/unversioned/info")).body == {"data": offered}


async def test_a_prism_central_without_api_v4_has_only_v3() -> None:
    call = Caller(Prism(newest_minor=None))
    assert (await call("OPTIONS", "/api/vmm/unversioned/info")).status == 404
    assert (await call("GET", IMAGES)).status == 404
    assert (await call("POST", "/api/nutanix/v3/images/list", {})).status == 200


async def test_what_is_not_served_says_so(call: Caller) -> None:
    unserved = await call("GET", "/api/vmm/v4.3/ahv/policies/vm-startup-policies")
    assert unserved.status == 501
    assert unserved.body["data"]["$objectType"] == "vmm.v4.error.ErrorResponse"
    assert (await call("GET", "/api/other/thing")).status == 404
    assert (await call("DELETE", IMAGES)).status == 405


async def test_machines_are_found_by_name_whatever_they_were_called_before(call: Caller) -> None:
    ids = [await call.make(name, nics=[], disks=[]) for name in ("one", "two", "two")]

    async def named(name: str, more: str = "") -> list[str]:
        body = (await call("GET", VMS, query=f"$filter=name eq '{name}'{more}")).body
        assert body["metadata"]["totalAvailableResults"] == len(body["data"])
        return [vm["extId"] for vm in body["data"]]

    assert await named("two") == ids[1:]
    assert await named("two", f" and extId eq '{ids[2]}'") == [ids[2]]
    assert await named("two", " or name eq 'one'") == ids
    assert await named("two' and name eq 'one") == []
    _, etag = await call.vm(ids[1])
    await call("PUT", f"{VMS}/{ids[1]}", {"name": "one"}, if_match=etag)
    assert set(await named("one")) == set(ids[:2])
    _, etag = await call.vm(ids[2])
    await call("DELETE", f"{VMS}/{ids[2]}", if_match=etag)
    assert await named("two") == []
