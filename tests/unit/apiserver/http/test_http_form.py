"""Forms of answers: tables, metadata alone, YAML, packed, indented."""

from __future__ import annotations

import gzip

import pytest
import yaml

from unit.apiserver.http.http_serving import CONFIG_MAPS, TABLE, WIDGETS, Api, config_map, widget


async def test_a_list_as_a_table_has_columns_rows_and_metadata_behind_them(api: Api) -> None:
    await api.post(WIDGETS, widget("a", color="red", replicas=2))
    table = (await api.get(WIDGETS, headers={"Accept": TABLE})).json
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"]["resourceVersion"] == str(api.registry.store.revision)
    assert [(c["name"], c["type"], c["priority"]) for c in table["columnDefinitions"]] == [
        ("Name", "string", 0),
        ("Color", "string", 0),
        ("Replicas", "integer", 1),
        ("Age", "date", 0),
    ]
    (row,) = table["rows"]
    assert row["cells"][:3] == ["a", "red", 2]
    assert row["cells"][3].endswith("s")
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert row["object"]["metadata"]["name"] == "a"


async def test_one_object_as_a_table_with_or_without_the_object(api: Api) -> None:
    made = await api.post(WIDGETS, widget("a", color="red"))
    none = (await api.get(f"{WIDGETS}/a?includeObject=None", headers={"Accept": TABLE})).json
    assert none["rows"][0]["object"] is None
    assert none["metadata"]["resourceVersion"] == made.json["metadata"]["resourceVersion"]
    whole = (await api.get(f"{WIDGETS}/a?includeObject=Object", headers={"Accept": TABLE})).json
    assert whole["rows"][0]["object"] == made.json
    odd = await api.get(f"{WIDGETS}/a?includeObject=Half", headers={"Accept": TABLE})
    assert odd.status == 400


async def test_built_in_kinds_print_the_columns_of_the_real_server(api: Api) -> None:
    await api.post(CONFIG_MAPS, config_map("a", x="y"))
    table = (await api.get(CONFIG_MAPS, headers={"Accept": TABLE})).json
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert table["rows"][0]["cells"][:2] == ["a", 1]


async def test_metadata_alone_of_a_list_and_of_one(api: Api) -> None:
    made = await api.post(CONFIG_MAPS, config_map("a", x="y"))
    form = "application/json;as={};g=meta.k8s.io;v=v1"
    some = await api.get(CONFIG_MAPS, headers={"Accept": form.format("PartialObjectMetadataList")})
    assert some.json["kind"] == "PartialObjectMetadataList"
    assert some.json["items"][0]["metadata"] == made.json["metadata"]
    assert "data" not in some.json["items"][0]
    one = await api.get(f"{CONFIG_MAPS}/a", headers={"Accept": form.format("PartialObjectMetadata")})
    assert one.json["kind"] == "PartialObjectMetadata"
    mixed = await api.get(CONFIG_MAPS, headers={"Accept": form.format("PartialObjectMetadata")})
    assert mixed.status == 406
    assert mixed.message.startswith("you requested PartialObjectMetadata, but the requested object is a list")


async def test_yaml_is_accepted_and_returned(api: Api) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: 'yes'\n"
    made = await api.post(CONFIG_MAPS, text, content_type="application/yaml", headers={"Accept": "application/yaml"})
    assert made.headers["Content-Type"] == "application/yaml"
    assert yaml.safe_load(made.body)["data"] == {"k": "yes"}
    assert (await api.get(f"{CONFIG_MAPS}/a")).json["data"] == {"k": "yes"}


@pytest.mark.parametrize("accept", ["text/html", "application/vnd.kubernetes.protobuf", "application/json;as=Bad"])
async def test_what_we_can_not_give_is_not_acceptable(api: Api, accept: str) -> None:
    refused = await api.get(CONFIG_MAPS, headers={"Accept": accept})
    assert (refused.status, refused.json["reason"]) == (406, "NotAcceptable")


@pytest.mark.parametrize(
    "accept",
    [
        "application/vnd.kubernetes.protobuf,application/json",
        "text/html, */*;q=0.1",
        "",
        "application/json;stream=watch",
    ],
)
async def test_json_is_the_fallback_format(api: Api, accept: str) -> None:
    answer = await api.get(CONFIG_MAPS, headers={"Accept": accept})
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")


async def test_large_answers_are_packed_for_who_takes_that(api: Api) -> None:
    for number in range(3):
        await api.post(CONFIG_MAPS, config_map(f"c{number}", text="x" * 50_000))
    packed = await api.get(CONFIG_MAPS, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    plain = await api.get(CONFIG_MAPS, headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    assert gzip.decompress(packed.body) == plain.body
    small = await api.get(f"{CONFIG_MAPS}/c0", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in small.headers


async def test_curl_and_browsers_get_indented_json(api: Api) -> None:
    await api.post(CONFIG_MAPS, config_map("a"))
    for answer in (
        await api.get(f"{CONFIG_MAPS}/a", headers={"User-Agent": "curl/8.5.0"}),
        await api.get(f"{CONFIG_MAPS}/a?pretty=true"),
        await api.get(f"{CONFIG_MAPS}/nosuch", headers={"User-Agent": "curl/8.5.0"}),
    ):
        assert answer.body.startswith(b"{\n  ")
    assert b"\n" not in (await api.get(f"{CONFIG_MAPS}/a?pretty=false", headers={"User-Agent": "curl/8"})).body


async def test_a_protobuf_body_of_a_built_in_kind_is_read(api: Api) -> None:
    # What `kubectl create configmap x --from-literal=a=b` sends.
    body = bytes.fromhex(
        "6b3873000a0f0a0276311209436f6e6669674d6170121b0a110a017812001a0022002a0032003800420012060a01611201621a002200"
    )
    made = await api.post(CONFIG_MAPS, body, content_type="application/vnd.kubernetes.protobuf")
    assert made.status == 201, made.body
    assert made.json["data"] == {"a": "b"}
    for broken in (b"k8s\x00abc", b"abc", body[:30], body[:4] + b"\xff" * 40):
        refused = await api.post(CONFIG_MAPS, broken, content_type="application/vnd.kubernetes.protobuf")
        assert refused.status == 400
        assert refused.message.startswith("the object provided is unrecognized (must be of type ConfigMap): ")


async def test_openapi_and_discovery_are_fetched_once(api: Api) -> None:
    accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    first = await api.get("/apis", headers=accept)
    assert first.json["kind"] == "APIGroupDiscoveryList"
    again = await api.get("/apis", headers={**accept, "If-None-Match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")
    index = (await api.get("/openapi/v3")).json
    url = index["paths"]["apis/example.com/v1"]["serverRelativeURL"]
    document = await api.get(url)
    assert "/apis/example.com/v1/namespaces/{namespace}/widgets" in document.json["paths"]
    old = await api.session.get(
        f"{api.base}/openapi/v3/apis/example.com/v1?hash=OLD",
        headers={"Authorization": "Bearer admin-token"},
        allow_redirects=False,
    )
    assert (old.status, old.headers["Location"]) == (301, url)


async def test_the_index_lists_every_path(api: Api) -> None:
    paths = (await api.get("/")).json["paths"]
    assert {"/api/v1", "/apis/example.com/v1", "/healthz", "/readyz/ping", "/metrics", "/version"} <= set(paths)
    version = (await api.get("/version")).json
    assert version["major"] == "1"


async def test_health_tells_all_or_one_check(api: Api) -> None:
    assert (await api.get("/readyz", token=None)).body == b"ok"
    verbose = await api.get("/readyz?verbose")
    assert verbose.body == b"[+]ping ok\n[+]store ok\n[+]shutdown ok\nreadyz check passed\n"
    assert (await api.get("/livez/ping")).body == b"ok"
    assert (await api.get("/readyz/nosuch")).body == b"404 page not found\n"
    api.server.health.add("disk", lambda: "it is full")
    failed = await api.get("/livez?verbose")
    assert failed.status == 500
    assert b"[-]disk failed: it is full" in failed.body
    assert (await api.get("/livez?exclude=disk")).status == 200


async def test_requests_are_counted_by_what_they_were_about(api: Api) -> None:
    await api.get(WIDGETS)
    await api.get(f"{WIDGETS}/nosuch")
    text = (await api.get("/metrics")).body.decode()
    wanted = (
        'apiserver_request_total{code="404",component="apiserver",group="example.com",resource="widgets",'
        'scope="resource",subresource="",verb="GET",version="v1"} 1.0'
    )
    assert wanted in text
    assert 'apiserver_request_duration_seconds_bucket{component="apiserver",group="example.com",le="+Inf"' in text
    assert 'apiserver_storage_objects{resource="namespaces"} 1.0' in text
    assert "homeport_store_revision " in text
