"""OpenAPI documents: complete, resolvable, and in the forms that kubectl asks for."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from homeport.api.meta import Resource
from homeport.apiserver.kinds.load import builtin_kinds, definitions
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.openapi.document import OpenApi
from homeport.apiserver.openapi.path import friendly_group
from homeport.apiserver.openapi.proto import encode_document, encode_schema
from homeport.apiserver.openapi.schema import descriptions
from homeport.apiserver.resource import Catalog, Scale, ServedKind, Version
from homeport.machinery.schema import Schema, compile_checker

PROTO = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_S = {"type": "string"}
RAW: dict[str, Any] = {
    "type": "object",
    "description": "A widget of ours.",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["color", "maybe"],
            "properties": {
                "color": {"type": "string", "description": "Its color.", "enum": ["red"], "minLength": 1},
                "amount": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": _S}},
                "maybe": {"type": "object", "nullable": True, "properties": {"a": _S}},
                "rule": {"type": "integer", "anyOf": [{"minimum": 1}], "default": 3, "maximum": 9.5},
                "list": {"type": "array", "items": {"type": "string", "nullable": True}},
                "object": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"a": _S}},
            },
        }
    },
}


def widget(raw: dict[str, Any] | None = None) -> ServedKind:
    schema = RAW if raw is None else raw
    at = Version(
        Resource("example.com", "v1", "Widget", "widgets"),
        Schema(schema),
        compile_checker(schema),
        status=True,
        scale=Scale(".spec.replicas", ".status.replicas"),
        selectable=(".spec.color",),
        raw_schema=schema,
    )
    return ServedKind(
        group="example.com",
        kind="Widget",
        plural="widgets",
        singular="widget",
        namespaced=True,
        storage="v1",
        versions={"v1": at},
        strategy=Plain(),
        custom=True,
    )


@pytest.fixture
def catalog() -> Catalog:
    catalog = Catalog()
    for served in [*builtin_kinds(), widget()]:
        catalog.add(served)
    return catalog


@pytest.fixture
def openapi(catalog: Catalog) -> OpenApi:
    return OpenApi(catalog)


def body(openapi: OpenApi, path: str) -> Any:
    document = openapi.find(path)
    assert document is not None, path
    return orjson.loads(document.body)


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for below in value.values():
            yield from nodes(below)
    elif isinstance(value, list):
        for below in value:
            yield from nodes(below)


def test_every_version_has_a_document_whose_references_resolve(openapi: OpenApi) -> None:
    index = body(openapi, "/openapi/v3")["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/example.com/v1"} <= set(index)
    for name in index:
        document = body(openapi, f"/openapi/v3/{name}")
        schemas = document["components"]["schemas"]
        for node in nodes(document):
            reference = node.get("$ref")
            if isinstance(reference, str):
                assert reference.removeprefix("#/components/schemas/") in schemas
                assert len(node) == 1, f"{name}: keywords beside {reference}"


def test_operation_ids_are_unique(openapi: OpenApi) -> None:
    document = body(openapi, "/openapi/v2")
    ids = Counter(node["operationId"] for node in nodes(document["paths"]) if "operationId" in node)
    assert [name for name, count in ids.items() if count > 1] == []
    assert {"readCoreV1NamespacedPod", "listAppsV1DeploymentForAllNamespaces", "createCoreV1Namespace"} <= set(ids)
    assert {"patchExampleComV1NamespacedWidgetScale", "deleteExampleComV1CollectionNamespacedWidget"} <= set(ids)


def test_groups_are_named_as_in_kubernetes() -> None:
    groups = ["", "apps", "rbac.authorization.k8s.io", "example.com"]
    assert [friendly_group(group) for group in groups] == ["core", "apps", "rbacAuthorization", "exampleCom"]


@pytest.mark.parametrize("path", ["/apis/apps/v1", "/apis/example.com/v1"])
def test_kubectl_finds_out_that_the_server_validates_fields(openapi: OpenApi, path: str) -> None:
    document = body(openapi, f"/openapi/v3{path}")
    patches = [item["patch"] for item in document["paths"].values() if "patch" in item]
    for patch in patches:
        names = {parameter["name"] for parameter in patch["parameters"]}
        assert {"fieldValidation", "dryRun", "fieldManager", "force"} <= names
        assert patch["x-kubernetes-action"] == "patch"
        assert set(patch["x-kubernetes-group-version-kind"]) == {"group", "version", "kind"}


def test_only_built_in_kinds_take_strategic_patches(openapi: OpenApi) -> None:
    strategic = "application/strategic-merge-patch+json"
    built_in = body(openapi, "/openapi/v3/apis/apps/v1")["paths"]
    custom = body(openapi, "/openapi/v3/apis/example.com/v1")["paths"]
    item = built_in["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    assert strategic in item["patch"]["requestBody"]["content"]
    item = custom["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]
    assert strategic not in item["patch"]["requestBody"]["content"]


def test_merge_keys_stand_beside_an_all_of(openapi: OpenApi) -> None:
    schemas = body(openapi, "/openapi/v3/apis/apps/v1")["components"]["schemas"]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    strategy = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"]
    assert strategy["x-kubernetes-patch-strategy"] == "retainKeys"
    assert strategy["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}]


def test_kinds_and_fields_are_described(openapi: OpenApi) -> None:
    schemas = body(openapi, "/openapi/v3/apis/apps/v1")["components"]["schemas"]
    spec = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]
    assert spec["replicas"]["description"] == "How many pods to keep running."
    for name, schema in schemas.items():
        marks = schema.get("x-kubernetes-group-version-kind", [])
        if len(marks) == 1:
            assert schema.get("description"), name


def test_descriptions_name_what_exists() -> None:
    known = definitions()
    for name, texts in descriptions().items():
        if name != "*":
            assert set(texts) - {""} <= set(known[name].get("properties", {})), name


def test_a_custom_kind_is_published_with_metadata_and_its_own_words(openapi: OpenApi) -> None:
    schema = body(openapi, "/openapi/v3/apis/example.com/v1")["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["description"] == "A widget of ours."
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "example.com", "kind": "Widget", "version": "v1"}]
    assert schema["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.color"}]
    assert schema["properties"]["metadata"]["allOf"][0]["$ref"].endswith("meta.v1.ObjectMeta")
    spec = schema["properties"]["spec"]["properties"]
    assert spec["amount"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert spec["object"]["required"] == ["kind", "apiVersion"]
    assert {"a", "apiVersion", "kind", "metadata"} == set(spec["object"]["properties"])
    assert "metadata" not in RAW["properties"], "the definition itself stays as it was"


def test_v2_leaves_out_what_it_cannot_say(openapi: OpenApi) -> None:
    found = body(openapi, "/openapi/v2")["definitions"]
    spec = found["com.example.v1.Widget"]["properties"]["spec"]
    assert spec["required"] == ["color"]
    fields = spec["properties"]
    assert fields["amount"] == {"x-kubernetes-int-or-string": True}
    assert fields["free"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert fields["maybe"] == {}
    assert fields["rule"] == {"type": "integer", "maximum": 9.5}
    assert fields["list"] == {"type": "array", "items": {}}
    assert found["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]["format"] == "int-or-string"
    assert found["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"] == "string"
    reference = found["io.k8s.api.apps.v1.Deployment"]["properties"]["spec"]["$ref"]
    assert reference == "#/definitions/io.k8s.api.apps.v1.DeploymentSpec"


def test_v2_says_nothing_of_a_kind_that_keeps_everything() -> None:
    catalog = Catalog()
    catalog.add(widget({"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": _S}}))
    found = body(OpenApi(catalog), "/openapi/v2")["definitions"]["com.example.v1.Widget"]
    assert set(found) == {"type", "x-kubernetes-group-version-kind"}


def test_v2_references_resolve(openapi: OpenApi) -> None:
    document = body(openapi, "/openapi/v2")
    for node in nodes(document):
        reference = node.get("$ref")
        if isinstance(reference, str):
            assert reference.removeprefix("#/definitions/") in document["definitions"]


def test_a_known_hash_may_be_kept_and_an_old_one_leads_to_the_new(openapi: OpenApi) -> None:
    url = body(openapi, "/openapi/v3")["paths"]["apis/apps/v1"]["serverRelativeURL"]
    path, _, digest = url.partition("?hash=")
    kept = openapi.find(path, wanted_hash=digest)
    assert kept is not None
    assert (kept.etag, kept.cache_control) == (digest, "public, immutable")
    moved = openapi.find(path, wanted_hash="OLD")
    assert moved is not None
    assert moved.location == url
    plain = openapi.find(path)
    assert plain is not None
    assert plain.cache_control == "no-cache, private"


def test_only_the_documents_of_a_changed_group_get_new_hashes(catalog: Catalog, openapi: OpenApi) -> None:
    before = body(openapi, "/openapi/v3")["paths"]
    apps = openapi.find("/openapi/v3/apis/apps/v1")
    tag = openapi.find("/openapi/v2")
    changed = {**RAW, "description": "Another."}
    catalog.add(widget(changed))
    after = body(openapi, "/openapi/v3")["paths"]
    assert {name for name in before if before[name] != after[name]} == {"apis/example.com/v1"}
    assert openapi.find("/openapi/v3/apis/apps/v1") is apps
    new_tag = openapi.find("/openapi/v2")
    assert tag is not None
    assert new_tag is not None
    assert tag.etag != new_tag.etag


@pytest.mark.parametrize("path", ["/openapi/v3/apis/nope/v1", "/openapi/v9", "/openapix", "/openapi"])
def test_other_paths_have_no_document(openapi: OpenApi, path: str) -> None:
    assert openapi.find(path) is None


def test_hashes_are_the_same_after_a_restart(catalog: Catalog) -> None:
    assert body(OpenApi(catalog), "/openapi/v3") == body(OpenApi(catalog), "/openapi/v3")


def decode(data: bytes) -> dict[int, list[Any]]:
    """The fields of a protobuf message by number."""
    found: dict[int, list[Any]] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        field, wire = divmod(varint(), 8)
        if wire == 0:
            value: Any = varint()
        elif wire == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        else:
            size = varint()
            value, at = data[at : at + size], at + size
        found.setdefault(field, []).append(value)
    return found


def named(entries: list[bytes]) -> dict[str, dict[int, list[Any]]]:
    pairs = [decode(entry) for entry in entries]
    return {pair[1][0].decode(): decode(pair[2][0]) for pair in pairs}


def test_the_protobuf_form_says_the_same(openapi: OpenApi) -> None:
    document = openapi.find("/openapi/v2", PROTO)
    assert document is not None
    assert document.content_type == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    plain = body(openapi, "/openapi/v2")
    message = decode(document.body)
    assert message[1] == [b"2.0"]
    schemas = named(decode(message[9][0])[1])
    assert set(schemas) == set(plain["definitions"])
    paths = named(decode(message[8][0])[2])
    assert set(paths) == set(plain["paths"])
    widget_schema = schemas["com.example.v1.Widget"]
    assert widget_schema[4] == [b"A widget of ours."]
    spec = named(decode(named(decode(widget_schema[25][0])[1])["spec"][25][0])[1])
    assert decode(spec["color"][22][0])[1] == [b"string"]
    assert decode(spec["color"][20][0])[2] == [b'"red"']
    assert spec["color"][12] == [1]
    assert spec["rule"][7] == [9.5]
    assert list(named(spec["amount"][31])) == ["x-kubernetes-int-or-string"]
    patch = decode(paths["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"][8][0])
    parameters = [decode(decode(decode(p)[1][0]).get(2, [b""])[0]) for p in patch[8]]
    queries = [decode(p[3][0]) for p in parameters if 3 in p]
    assert {q[4][0] for q in queries} == {b"dryRun", b"fieldManager", b"fieldValidation", b"force"}
    assert named(patch[13])["x-kubernetes-action"][2] == [b'"patch"']


def test_numbers_and_flags_survive_the_protobuf_form() -> None:
    schema = {
        "maxLength": 300,
        "additionalProperties": True,
        "items": {"$ref": "#/definitions/X"},
        "default": {"a": 1},
        "uniqueItems": True,
        "required": ["a", "b"],
    }
    raw = encode_document({"info": {"title": "t", "version": "v"}}, {}, {"S": encode_schema(schema)})
    found = named(decode(decode(raw)[9][0])[1])["S"]
    assert found[11] == [300]
    assert decode(found[21][0])[2] == [1]
    assert decode(decode(found[23][0])[1][0])[1] == [b"#/definitions/X"]
    assert decode(found[5][0])[2] == [b'{"a":1}']
    assert found[16] == [1]
    assert found[19] == [b"a", b"b"]
