"""Requests that can't be served: what is wrong is said in the words of kube-apiserver, with the same code."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from typing import Any

import pytest

from homeport.apiserver.http.limit import InFlight
from homeport.apiserver.registry import Call
from unit.apiserver.http.http_serving import ADMIN, CONFIG_MAPS, NOBODY, WIDGETS, Api, config_map, serving, widget

MERGE = "application/merge-patch+json"
CONFIG_MAP = "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; "
WIDGET = "the object provided is unrecognized (must be of type Widget): "


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        (CONFIG_MAPS, b'{"a":', CONFIG_MAP + 'json parse error: unexpected end of JSON input ({"a":)'),
        (CONFIG_MAPS, b"", CONFIG_MAP + "json parse error: unexpected end of JSON input (<empty>)"),
        (
            CONFIG_MAPS,
            b'{"metadata":{"name":"x"}} trailing',
            CONFIG_MAP
            + 'json parse error: invalid character \'t\' after top-level value ({"metadata":{"name":"x"}} trai ...)',
        ),
        (WIDGETS, b"{}", WIDGET + "Object 'Kind' is missing in '{}' ({})"),
    ],
)
async def test_a_malformed_body_is_named(api: Api, path: str, body: bytes, message: str) -> None:
    refused = await api.post(path, body)
    assert (refused.status, refused.message) == (400, message)
    assert refused.json["reason"] == "BadRequest"


@pytest.mark.parametrize("body", [b"[]", b'"x"', b"5", b"true", b"\xff\xfe{}", b"{bad", b"NaN", b'{"a":1e400}'])
async def test_what_is_no_object_is_a_bad_request(api: Api, body: bytes) -> None:
    refused = await api.post(WIDGETS, body)
    assert (refused.status, refused.json["kind"]) == (400, "Status")


async def test_nesting_of_any_depth_is_refused_politely(api: Api) -> None:
    for depth in (600, 1100, 20_000):
        inner = b'{"a":' * depth + b"1" + b"}" * depth
        body = b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"free":%s}}' % inner
        for path, content_type in ((WIDGETS, "application/json"), (WIDGETS, "application/yaml")):
            answer = await api.post(path, body, content_type=content_type)
            assert answer.status in (201, 400, 409), answer.body


@pytest.mark.parametrize("number", ["9223372036854775808", "18446744073709551615", "99999999999999999999"])
async def test_integers_beyond_int64_are_floats_as_in_go(api: Api, number: str) -> None:
    body = f'{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"x"}},"spec":{{"free":{{"n":{number}}}}}}}'
    made = await api.post(WIDGETS, body.encode())
    assert made.status == 201, made.body
    assert made.json["spec"]["free"]["n"] == float(number)
    as_integer = body.replace(f'"free":{{"n":{number}}}', f'"replicas":{number}').replace('"x"', '"y"')
    assert (await api.post(WIDGETS, as_integer.encode())).status == 422


async def test_a_body_over_three_mebibytes_is_too_large(api: Api) -> None:
    big = config_map("a", text="x" * (3 * 1024 * 1024))
    refused = await api.post(CONFIG_MAPS, big)
    assert (refused.status, refused.json["reason"]) == (413, "RequestEntityTooLarge")
    assert refused.message == "Request entity too large: limit is 3145728"


async def test_a_chunked_body_over_three_mebibytes_is_too_large(api: Api) -> None:
    async def chunks() -> Any:
        for _ in range(50):
            yield b" " * 100_000

    headers = {"Authorization": f"Bearer {ADMIN}"}
    async with api.session.post(api.base + CONFIG_MAPS, data=chunks(), headers=headers) as got:
        assert got.status == 413


@pytest.mark.parametrize(
    ("content_type", "path"),
    [
        ("text/xml", CONFIG_MAPS),
        ("application/cbor", CONFIG_MAPS),
        ("application/x-www-form-urlencoded", CONFIG_MAPS),
        ("application/vnd.kubernetes.protobuf", WIDGETS),
    ],
)
async def test_unknown_content_types_are_unsupported(api: Api, content_type: str, path: str) -> None:
    refused = await api.post(path, b"k8s\x00abc", content_type=content_type)
    assert (refused.status, refused.json["reason"]) == (415, "UnsupportedMediaType")
    assert "accepted media types include: application/json, application/yaml" in refused.message


async def test_a_packed_body_is_unsupported(api: Api) -> None:
    refused = await api.post(CONFIG_MAPS, b"\x1f\x8b", headers={"Content-Encoding": "gzip"})
    assert refused.status == 415


@pytest.mark.parametrize(
    ("content_type", "body", "message"),
    [
        (
            "application/json-patch+json",
            b"{}",
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        ("application/json-patch+json", b"[{", "invalid JSON patch"),
        (
            MERGE,
            b"[]",
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (MERGE, b"null", "Invalid JSON Patch"),
        ("application/apply-patch+yaml", b"{}", "invalid object type: /, Kind="),
    ],
)
async def test_a_malformed_patch_is_named(api: Api, content_type: str, body: bytes, message: str) -> None:
    await api.post(CONFIG_MAPS, config_map("a"))
    path = f"{CONFIG_MAPS}/a?fieldManager=m"
    refused = await api.call("PATCH", path, body, content_type=content_type)
    assert (refused.status, refused.message) == (400, message)


async def test_a_strategic_patch_is_for_built_in_kinds_only(api: Api) -> None:
    await api.post(WIDGETS, widget("a"))
    strategic = "application/strategic-merge-patch+json"
    refused = await api.call("PATCH", f"{WIDGETS}/a", {}, content_type=strategic)
    assert refused.status == 415
    assert refused.message == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
    await api.post(CONFIG_MAPS, config_map("a", k="v"))
    done = await api.call("PATCH", f"{CONFIG_MAPS}/a", {"data": {"k": None, "q": "r"}}, content_type=strategic)
    assert done.json["data"] == {"q": "r"}


async def test_ten_thousand_operations_are_enough(api: Api) -> None:
    operations = [{"op": "test", "path": "/a", "value": 1}] * 10_001
    refused = await api.call("PATCH", f"{CONFIG_MAPS}/a", operations, content_type="application/json-patch+json")
    assert refused.status == 413
    assert refused.message.endswith("is 10000, got 10001")


async def test_only_the_known_answers_to_force_and_validation_are_taken(api: Api) -> None:
    forced = await api.call("PATCH", f"{CONFIG_MAPS}/a?force=true", {}, content_type=MERGE)
    assert forced.message == (
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch'
    )
    odd = await api.post(f"{CONFIG_MAPS}?fieldValidation=Bad", config_map("z"))
    assert odd.message.endswith('Unsupported value: "Bad": supported values: "", "Ignore", "Strict", "Warn"')
    long = await api.post(f"{CONFIG_MAPS}?fieldManager={'x' * 129}", config_map("z"))
    assert long.message.endswith("fieldManager: Too long: may not be more than 128 bytes")
    bell = await api.post(f"{CONFIG_MAPS}?fieldManager=%07", config_map("z"))
    assert bell.status == 422


@pytest.mark.parametrize("query", ["limit=x", "limit=99999999999999999999", "timeoutSeconds=soon"])
async def test_numbers_in_the_query_must_be_numbers(api: Api, query: str) -> None:
    refused = await api.get(f"{CONFIG_MAPS}?{query}")
    assert refused.status == 400
    assert refused.message.startswith("strconv.ParseInt: parsing ")


async def test_duplicate_fields_warn_or_refuse(api: Api) -> None:
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"},"data":{"a":"b","a":"c"},"data":{"z":"y"}}'
    strict = await api.post(f"{CONFIG_MAPS}?fieldValidation=Strict", body % b"s")
    assert strict.status == 400
    assert strict.message == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'duplicate field "data.a", duplicate field "data"'
    )
    warned = await api.post(CONFIG_MAPS, body % b"w")
    assert warned.status == 201
    assert warned.warnings == [r'299 - "duplicate field \"data.a\""', r'299 - "duplicate field \"data\""']
    assert (await api.post(f"{CONFIG_MAPS}?fieldValidation=Ignore", body % b"i")).warnings == []


async def test_a_strict_refusal_names_duplicate_and_unknown_fields(api: Api) -> None:
    body = (
        b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"d"},'
        b'"spec":{"color":"red","color":"blue","zzz":1}}'
    )
    refused = await api.post(f"{WIDGETS}?fieldValidation=Strict", body)
    assert refused.message == (
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: '
        'duplicate field "spec.color", unknown field "spec.zzz"'
    )


async def test_unknown_fields_come_back_as_warnings(api: Api) -> None:
    made = await api.post(WIDGETS, widget("a", nosuch=1))
    assert made.warnings == [r'299 - "unknown field \"spec.nosuch\""']


async def test_paths_that_nobody_serves_are_not_found(api: Api) -> None:
    for path in ("/nosuch", "/apis/nosuch.example.com/v1/things", "/apis/example.com/v2/widgets", "/apis/nosuch"):
        answer = await api.get(path)
        assert (answer.status, answer.body) == (404, b"404 page not found\n"), path
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    for path in ("/api/v1/nosuch", "/api/v2", "/api/v1/namespaces/default/nodes", f"{CONFIG_MAPS}/a/nosub"):
        answer = await api.get(path)
        assert (answer.status, answer.message) == (404, "the server could not find the requested resource"), path
        assert answer.json["details"] == {}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{CONFIG_MAPS}/a"),
        ("PUT", CONFIG_MAPS),
        ("PATCH", CONFIG_MAPS),
        ("POST", "/api/v1/configmaps"),
        ("OPTIONS", CONFIG_MAPS),
        ("HEAD", CONFIG_MAPS),
        ("DELETE", "/api/v1/namespaces"),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/version"),
    ],
)
async def test_methods_that_a_path_does_not_have_are_not_allowed(api: Api, method: str, path: str) -> None:
    refused = await api.call(method, path)
    assert refused.status == 405
    if method != "HEAD":
        assert refused.message == "the server does not allow this method on the requested resource"


async def test_a_bad_token_is_unauthorized_and_none_is_anonymous(api: Api) -> None:
    bad = await api.get(CONFIG_MAPS, token="wrong")
    assert bad.status == 401
    assert bad.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }
    nobody = await api.get(CONFIG_MAPS, token=None)
    assert nobody.status == 403
    assert nobody.message == (
        'configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" in API group "" '
        'in the namespace "default"'
    )
    path = await api.get("/openapi/v2", token=None)
    assert path.message == 'forbidden: User "system:anonymous" cannot get path "/openapi/v2"'
    assert path.json["details"] == {}


@pytest.mark.parametrize(
    ("method", "path", "verb"),
    [
        ("GET", f"{WIDGETS}?watch=1", "watch"),
        ("GET", f"{WIDGETS}/a", "get"),
        ("POST", WIDGETS, "create"),
        ("PUT", f"{WIDGETS}/a", "update"),
        ("PATCH", f"{WIDGETS}/a", "patch"),
        ("DELETE", f"{WIDGETS}/a", "delete"),
        ("DELETE", WIDGETS, "deletecollection"),
    ],
)
async def test_each_verb_is_authorized_by_its_own_name(api: Api, method: str, path: str, verb: str) -> None:
    refused = await api.call(method, path, token=NOBODY)
    assert refused.status == 403
    assert f'User "nobody" cannot {verb} resource "widgets" in API group "example.com"' in refused.message


async def test_impersonation_needs_permission_and_changes_the_user(api: Api) -> None:
    as_nobody = {"Impersonate-User": "nobody"}
    refused = await api.get(WIDGETS, headers=as_nobody)
    assert refused.status == 403
    assert 'User "nobody" cannot list' in refused.message
    may_not = await api.get(WIDGETS, token=NOBODY, headers={"Impersonate-User": "admin"})
    assert 'User "nobody" cannot impersonate resource "users"' in may_not.message


@pytest.mark.parametrize("header", ["Impersonate-Extra-Scopes", "Impersonate-Group", "Impersonate-Uid"])
async def test_impersonation_without_a_user_is_an_error(api: Api, header: str) -> None:
    refused = await api.get(WIDGETS, headers={header: "x"})
    assert (refused.status, refused.json["reason"]) == (400, "BadRequest")
    assert "without impersonating a user" in refused.message


@pytest.mark.parametrize("form", ["json", "yaml"])
async def test_a_refused_body_is_let_go_at_once(api: Api, form: str) -> None:
    """Not when the garbage collector happens to come by: a few of them would fill the memory."""
    text = ",".join(f'"k{number}": "v{number}"' for number in range(20_000))
    body = f'{{"metadata": {{"name": "BAD"}}, "data": {{{text}}}}}'.encode()
    if form == "yaml":
        body = b"\n" + body  # or else it would be taken for JSON
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        await api.post(CONFIG_MAPS, body, content_type=f"application/{form}")
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(4):
            refused = await api.post(CONFIG_MAPS, body, content_type=f"application/{form}")
            assert refused.status == 422
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert after - before < len(body)


async def test_too_many_requests_get_a_retry_after() -> None:
    async with serving(limits=InFlight(mutating=1, reading=5)) as api:
        release, begun = asyncio.Event(), asyncio.Event()

        async def slow(call: Call) -> dict[str, Any]:
            begun.set()
            await release.wait()
            return {}

        api.registry.connect("example.com", "widgets", "slow", slow, "POST")
        roles = "/apis/rbac.authorization.k8s.io/v1"
        rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
        role = {"metadata": {"name": "all"}, "rules": [rule]}
        binding = {
            "metadata": {"name": "all"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}],
        }
        await api.post(f"{roles}/clusterroles", role)
        assert (await api.post(f"{roles}/clusterrolebindings", binding)).status == 201
        first = asyncio.create_task(api.post(f"{WIDGETS}/a/slow", {}, token=NOBODY))
        await begun.wait()
        refused = await api.post(WIDGETS, widget("b"), token=NOBODY)
        assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
        assert (await api.get(WIDGETS, token=NOBODY)).status == 200
        assert (await api.post(WIDGETS, widget("c"))).status == 201  # administrators get in
        release.set()
        assert (await first).status == 201


async def test_an_unexpected_failure_is_a_500_that_says_nothing_but_where_to_look(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken(call: Call) -> dict[str, Any]:
        raise KeyError("secret detail")

    api.registry.connect("example.com", "widgets", "broken", broken, "POST")
    failed = await api.post(f"{WIDGETS}/a/broken", {"password": "hunter2"})
    assert (failed.status, failed.json["reason"]) == (500, "InternalError")
    assert "secret detail" not in failed.message
    assert failed.headers["Audit-Id"] in failed.message
    logged = "".join(capsys.readouterr())
    assert failed.headers["Audit-Id"] in logged
    assert "KeyError" in logged
    assert "hunter2" not in logged


async def test_patches_can_not_nest_an_object_beyond_what_can_be_written(api: Api) -> None:
    await api.post(WIDGETS, widget("a", free={}))
    deep: Any = {}
    for _ in range(150):
        deep = {"a": deep}
    for depth in (0, 150, 300):
        operation = {"op": "add", "path": "/spec/free" + "/a" * depth, "value": deep}
        answer = await api.call("PATCH", f"{WIDGETS}/a", [operation], content_type="application/json-patch+json")
        assert answer.status in (200, 400, 422), answer.body
    assert (await api.get(f"{WIDGETS}/a")).status == 200


async def test_bytes_that_are_no_text_are_replaced(api: Api) -> None:
    made = await api.post(CONFIG_MAPS, b'{"metadata":{"name":"a"},"data":{"k":"\xff"}}')
    assert (made.status, made.json["data"]) == (201, {"k": "\ufffd"})
