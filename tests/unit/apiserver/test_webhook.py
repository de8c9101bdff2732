"""Webhooks end to end: real TLS on loopback, answers of every kind."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
import pytest
import trustme
from aiohttp import web

from homeport.apiserver.http.webhook import WebhookCaller
from homeport.apiserver.resource import Json, ServedKind
from homeport.apiserver.verb.admission import Admission
from homeport.apiserver.webhook.dispatch import WebhookAdmission
from homeport.apiserver.webhook.endpoint import ServiceEndpoints
from homeport.apiserver.webhook.hook import Condition, ConditionError
from homeport.client.errors import ApiError, BadRequest, Forbidden, Internal
from homeport.store import Store
from tlspeer import tls_peer
from unit.apiserver.admission_sample import ANNA, CONFIG_MAP, NAMESPACE, NODE, WIDGET, attributes, kind, namespace, put

Answer = Callable[[Json], Awaitable[Json | web.Response] | Json | web.Response]


class Server:
    """A webhook server. `answers` by path; `seen` are the requests of the reviews."""

    def __init__(self, url: str, ca: str) -> None:
        self.url = url
        self.ca = ca
        self.answers: dict[str, Answer] = {}
        self.seen: list[tuple[str, Json]] = []
        self.review_versions: list[str] = []

    def client(self, path: str) -> Json:
        return {"url": f"{self.url}/{path}", "caBundle": self.ca}

    async def take(self, request: web.BaseRequest) -> web.Response:
        review = orjson.loads(await request.read())
        path = request.path.lstrip("/")
        self.seen.append((path, review["request"]))
        self.review_versions.append(review.get("apiVersion", ""))
        answer = self.answers[path](review["request"])
        if isinstance(answer, Awaitable):
            answer = await answer
        if isinstance(answer, web.Response):
            return answer
        response = {"uid": review["request"]["uid"], **answer}
        body = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
        return web.Response(body=orjson.dumps(body), content_type="application/json")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1", "hook.ops.svc").configure_cert(context)
    made = Server("", base64.b64encode(ca.cert_pem.bytes()).decode())
    async with tls_peer(made.take, context) as port:
        made.url = f"https://127.0.0.1:{port}"
        yield made


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = await Store.open(None)
    await namespace(opened, "default", team="a")
    yield opened
    await opened.close()


async def rename(objects: list[Json], served: ServedKind, version: str) -> list[Json]:
    for obj in objects:
        obj["apiVersion"] = f"{served.group}/{version}"
        obj["convertedTo"] = version
    return objects


def condition(text: str) -> Condition:
    """A stand-in for CEL: `fails` can't be evaluated, else the name that the object must have."""

    def evaluate(variables: Any) -> bool:
        if text == "fails":
            raise ConditionError("no such key")
        return bool(variables["object"]["metadata"]["name"] == text)

    return evaluate


@pytest.fixture
async def admission(store: Store, server: Server) -> AsyncIterator[Admission]:
    made = Admission()
    caller = WebhookCaller(ServiceEndpoints(store).resolve)
    webhooks = WebhookAdmission(store, caller, rename, condition, made)
    made.add(webhooks, last=True)
    stop = webhooks.follow()
    yield made
    stop()
    await caller.close()


RULE = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}


async def configure(store: Store, server: Server, path: str, *, mutating: bool = False, **more: Any) -> None:
    webhook = {
        "name": f"{path}.example.org",
        "clientConfig": server.client(path),
        "rules": [RULE],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
        **more,
    }
    bucket = f"{'mutating' if mutating else 'validating'}webhookconfigurations.admissionregistration.k8s.io"
    await put(store, bucket, path, {"metadata": {"name": path}, "webhooks": [webhook]})


def allow(request: Json) -> Json:
    return {"allowed": True}


def patching(*operations: Json) -> Answer:
    patch = base64.b64encode(orjson.dumps(operations)).decode()
    return lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def setting(field: str, value: Any) -> Answer:
    return patching({"op": "add", "path": f"/{field}", "value": value})


async def test_the_review_tells_all_about_the_request(store: Store, server: Server, admission: Admission) -> None:
    server.answers["a"] = allow
    await configure(store, server, "a")
    old = {"metadata": {"name": "a"}}
    await admission.validate(attributes(operation="UPDATE", old=old, data={"k": "v"}))
    (_, request), *_ = server.seen
    assert request.pop("uid")
    assert request == {
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": "a",
        "namespace": "default",
        "operation": "UPDATE",
        "userInfo": {
            "username": "anna",
            "uid": "7",
            "groups": list(ANNA.groups),
            "extra": {"scopes": ["a"]},
        },
        "object": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "default"},
            "data": {"k": "v"},
        },
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"},
    }


async def test_a_kind_without_webhooks_is_not_looked_at(store: Store, server: Server, admission: Admission) -> None:
    rule = {**RULE, "apiGroups": ["example.org"], "resources": ["widgets"]}
    await configure(store, server, "a", rules=[rule])
    assert admission.validates(WIDGET, "CREATE", "")
    assert not admission.validates(CONFIG_MAP, "CREATE", "")
    assert not admission.mutates(WIDGET, "CREATE", "")


async def test_a_removed_webhook_is_asked_no_more(store: Store, server: Server, admission: Admission) -> None:
    await configure(store, server, "a")
    assert admission.validates(CONFIG_MAP, "CREATE", "")
    bucket = "validatingwebhookconfigurations.admissionregistration.k8s.io"
    await store.delete(bucket, "a", lambda revision: b"{}", expect=None)
    assert not admission.validates(CONFIG_MAP, "CREATE", "")


@pytest.mark.parametrize(
    ("answer", "code", "reason", "message"),
    [
        ({"message": "too big"}, 400, None, ": too big"),
        ({"message": "no", "code": 403, "reason": "Forbidden"}, 403, "Forbidden", ": no"),
        ({"reason": "Expired", "code": 410}, 410, "Expired", ": Expired"),
        ({"message": "odd", "code": 200}, 400, None, ": odd"),
        ({"message": "m", "code": 403}, 403, None, ": m"),
        (None, 400, None, " without explanation"),
    ],
)
async def test_a_denial_is_passed_on(
    store: Store, server: Server, admission: Admission, answer: Json | None, code: int, reason: str | None, message: str
) -> None:
    server.answers["a"] = lambda request: {"allowed": False, **({"status": answer} if answer else {})}
    await configure(store, server, "a")
    with pytest.raises(ApiError) as refused:
        await admission.validate(attributes())
    status = refused.value.status
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
    assert status["message"] == f'admission webhook "a.example.org" denied the request{message}'
    assert (status["code"], status.get("reason")) == (code, reason)


async def test_the_first_denial_in_the_order_of_names_wins(store: Store, server: Server, admission: Admission) -> None:
    for path in ("b", "a"):
        server.answers[path] = lambda request: {"allowed": False}
        await configure(store, server, path)
    with pytest.raises(ApiError, match=r'"a\.example\.org" denied'):
        await admission.validate(attributes())
    assert sorted(path for path, _ in server.seen) == ["a", "b"]


async def test_mutating_webhooks_change_the_object_one_after_the_other(
    store: Store, server: Server, admission: Admission
) -> None:
    server.answers["a"] = setting("first", 1)
    server.answers["b"] = lambda request: setting("second", request["object"]["first"] + 1)(request)
    for path in ("b", "a"):
        await configure(store, server, path, mutating=True)
    given = attributes()
    before = given.object
    changed = await admission.mutate(given)
    assert (changed["first"], changed["second"]) == (1, 2)
    assert changed is not before


async def test_no_patch_leaves_the_very_object(store: Store, server: Server, admission: Admission) -> None:
    server.answers["a"] = allow
    await configure(store, server, "a", mutating=True)
    given = attributes()
    assert await admission.mutate(given) is given.object


async def test_a_webhook_is_asked_again_if_it_wants_to_and_the_object_changed(
    store: Store, server: Server, admission: Admission
) -> None:
    server.answers["a"] = allow
    server.answers["b"] = setting("x", 1)
    server.answers["c"] = allow
    for path in ("a", "b", "c"):
        await configure(store, server, path, mutating=True, reinvocationPolicy="IfNeeded")
    await admission.mutate(attributes())
    assert [path for path, _ in server.seen] == ["a", "b", "c", "a"]


async def test_a_webhook_that_does_not_want_to_is_asked_once(
    store: Store, server: Server, admission: Admission
) -> None:
    server.answers["a"] = allow
    server.answers["b"] = setting("x", 1)
    for path in ("a", "b"):
        await configure(store, server, path, mutating=True)
    await admission.mutate(attributes())
    assert [path for path, _ in server.seen] == ["a", "b"]


async def test_warnings_and_annotations_are_kept(store: Store, server: Server, admission: Admission) -> None:
    server.answers["a"] = lambda request: {"allowed": True, "warnings": ["old"], "auditAnnotations": {"k": "v"}}
    await configure(store, server, "a")
    given = attributes()
    await admission.validate(given)
    assert given.ctx.warnings == ["old"]
    assert given.annotations == {"a.example.org/k": "v"}


async def test_selectors_choose_namespaces_and_objects(store: Store, server: Server, admission: Admission) -> None:
    await namespace(store, "other", team="b")
    server.answers["a"] = lambda request: {"allowed": False}
    await configure(
        store,
        server,
        "a",
        namespaceSelector={"matchLabels": {"team": "a"}},
        objectSelector={"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]},
    )
    await admission.validate(attributes(namespace="other"))
    await admission.validate(attributes(metadata={"labels": {"skip": "yes"}}))
    await admission.validate(attributes(NAMESPACE, name="new", metadata={"labels": {"team": "b"}}))
    assert server.seen == []
    for concerned in (attributes(), attributes(NODE), attributes(NAMESPACE, metadata={"labels": {"team": "a"}})):
        with pytest.raises(ApiError):
            await admission.validate(concerned)
    # Whether it was or will be concerned: both count.
    with pytest.raises(ApiError):
        await admission.validate(
            attributes(operation="UPDATE", metadata={"labels": {"skip": "yes"}}, old={"metadata": {"name": "a"}})
        )


@pytest.mark.parametrize(
    ("rule", "served", "operation", "subresource", "concerned"),
    [
        ({"operations": ["CREATE"]}, CONFIG_MAP, "UPDATE", "", False),
        ({"scope": "Cluster"}, CONFIG_MAP, "CREATE", "", False),
        ({"scope": "Cluster"}, NAMESPACE, "CREATE", "", True),
        ({"scope": "Namespaced"}, NODE, "CREATE", "", False),
        ({"resources": ["configmaps"]}, CONFIG_MAP, "UPDATE", "status", False),
        ({"resources": ["configmaps/*"]}, CONFIG_MAP, "UPDATE", "status", True),
        ({"resources": ["configmaps/*"]}, CONFIG_MAP, "UPDATE", "", True),
        ({"resources": ["*/status"]}, CONFIG_MAP, "UPDATE", "status", True),
        ({"resources": ["*/*"]}, CONFIG_MAP, "UPDATE", "scale", True),
        ({"resources": ["*"]}, CONFIG_MAP, "UPDATE", "scale", False),
        ({"apiVersions": ["v2"]}, CONFIG_MAP, "CREATE", "", False),
    ],
)
async def test_rules_say_which_requests_concern_a_webhook(
    store: Store,
    server: Server,
    admission: Admission,
    rule: Json,
    served: ServedKind,
    operation: str,
    subresource: str,
    concerned: bool,
) -> None:
    await configure(store, server, "a", rules=[{**RULE, **rule}])
    assert admission.validates(served, operation, subresource) is concerned


async def test_webhooks_are_not_asked_about_webhooks(store: Store, server: Server, admission: Admission) -> None:
    await configure(store, server, "a")
    group = "admissionregistration.k8s.io"
    own = kind("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", group, namespaced=False)
    assert not admission.validates(own, "DELETE", "")


async def test_a_webhook_sees_the_version_it_knows(store: Store, server: Server, admission: Admission) -> None:
    server.answers["a"] = setting("x", 1)
    rule = {**RULE, "apiGroups": ["example.org"], "apiVersions": ["v1"]}
    await configure(store, server, "a", mutating=True, rules=[rule])
    changed = await admission.mutate(attributes(WIDGET, version="v1alpha1"))
    request = server.seen[0][1]
    assert request["object"]["apiVersion"] == "example.org/v1"
    assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v1", "v1alpha1")
    assert (changed["apiVersion"], changed["convertedTo"], changed["x"]) == ("example.org/v1alpha1", "v1alpha1", 1)


async def test_an_exact_webhook_is_not_asked_about_other_versions(
    store: Store, server: Server, admission: Admission
) -> None:
    rule = {**RULE, "apiGroups": ["example.org"], "apiVersions": ["v1"]}
    await configure(store, server, "a", rules=[rule], matchPolicy="Exact")
    await admission.validate(attributes(WIDGET, version="v1alpha1"))
    assert server.seen == []


async def test_match_conditions_choose_objects(store: Store, server: Server, admission: Admission) -> None:
    server.answers["a"] = lambda request: {"allowed": False}
    await configure(store, server, "a", matchConditions=[{"name": "n", "expression": "wanted"}])
    await admission.validate(attributes(name="unwanted"))
    with pytest.raises(ApiError, match="denied"):
        await admission.validate(attributes(name="wanted"))


async def test_a_condition_that_fails_follows_the_failure_policy(
    store: Store, server: Server, admission: Admission
) -> None:
    broken = [{"name": "n", "expression": "fails"}]
    await configure(store, server, "a", matchConditions=broken)
    with pytest.raises(Forbidden) as refused:
        await admission.validate(attributes())
    assert str(refused.value) == "configmaps \"a\" is forbidden: expression 'fails' resulted in error: no such key"
    await configure(store, server, "a", matchConditions=broken, failurePolicy="Ignore")
    await admission.validate(attributes())
    # One that says no settles it, whatever another could not say.
    await configure(store, server, "a", matchConditions=[*broken, {"name": "m", "expression": "wanted"}])
    await admission.validate(attributes(name="unwanted"))
    assert server.seen == []


async def test_a_dry_run_needs_a_webhook_without_side_effects(
    store: Store, server: Server, admission: Admission
) -> None:
    server.answers["a"] = allow
    await configure(store, server, "a", sideEffects="Some")
    with pytest.raises(BadRequest, match=r'admission webhook "a\.example\.org" does not support dry run'):
        await admission.validate(attributes(dry_run=True))
    await configure(store, server, "a", sideEffects="NoneOnDryRun")
    await admission.validate(attributes(dry_run=True))
    assert server.seen[0][1]["dryRun"] is True
    assert server.seen[0][1]["options"]["dryRun"] == ["All"]


async def test_mutating_webhooks_may_refuse_deletions(store: Store, server: Server, admission: Admission) -> None:
    server.answers["a"] = lambda request: {"allowed": False, "status": {"message": "keep it"}}
    await configure(store, server, "a", mutating=True)
    with pytest.raises(ApiError, match="keep it"):
        await admission.validate(attributes(operation="DELETE"))
    request = server.seen[0][1]
    assert request["object"] is None
    assert request["oldObject"]["metadata"]["name"] == "a"


async def test_the_older_review_is_used_where_it_is_listed_first(
    store: Store, server: Server, admission: Admission
) -> None:
    server.answers["a"] = lambda request: web.json_response({"response": {"allowed": True}})
    await configure(store, server, "a", admissionReviewVersions=["v1beta1", "v1"])
    await admission.validate(attributes())
    assert server.review_versions == ["admission.k8s.io/v1beta1"]


SERVICE = {"namespace": "ops", "name": "hook", "port": 8443, "path": "/check"}


async def test_a_service_is_reached_at_its_endpoint_under_its_own_name(
    store: Store, server: Server, admission: Admission
) -> None:
    server.answers["check"] = lambda request: {"allowed": False}
    port = int(server.url.rpartition(":")[2])
    ports = [{"name": "hooks", "port": 8443, "targetPort": "https"}]
    await put(store, "services", "ops/hook", {"metadata": {"name": "hook"}, "spec": {"ports": ports}})
    slice_ = {
        "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}],
        "ports": [{"name": "hooks", "port": port}],
    }
    await put(store, "endpointslices.discovery.k8s.io", "ops/hook-1", slice_)
    await configure(store, server, "a", clientConfig={"service": SERVICE, "caBundle": server.ca})
    with pytest.raises(ApiError, match="denied"):
        await admission.validate(attributes())


async def test_a_service_without_endpoints_is_a_failure_that_names_it(
    store: Store, server: Server, admission: Admission
) -> None:
    await put(store, "services", "ops/hook", {"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 8443}]}})
    await configure(store, server, "a", clientConfig={"service": SERVICE, "caBundle": server.ca})
    with pytest.raises(Internal) as failed:
        await admission.validate(attributes())
    assert str(failed.value) == (
        'Internal error occurred: failed calling webhook "a.example.org": failed to call webhook: '
        'Post "https://hook.ops.svc:8443/check?timeout=5s": '
        'no endpoints available for service "hook" in namespace "ops": it has no endpoints'
    )


def _body(**review: Any) -> Answer:
    return lambda request: web.json_response(review)


_WRONG_UID = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": "x", "allowed": True}}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            lambda request: web.Response(status=500, text="boom"),
            'failed to call webhook: an error on the server ("boom")',
        ),
        (lambda request: web.Response(status=404), "failed to call webhook: the server could not find the requested"),
        (lambda request: web.Response(status=302, headers={"Location": "/b"}), '("status 302")'),
        (lambda request: web.Response(text="hello"), "failed to call webhook: couldn't parse the response"),
        (lambda request: web.json_response("hello"), "failed to call webhook: couldn't get version/kind"),
        (_body(), "received invalid webhook response: webhook response was absent"),
        (_body(apiVersion="v1", kind="Pod", response={}), "expected webhook response of admission.k8s.io/v1, Kind=Adm"),
        (_body(**_WRONG_UID), "received invalid webhook response: expected response.uid"),
        (lambda request: {"allowed": True, "patch": "!!", "patchType": "JSONPatch"}, "the patch can't be decoded"),
        (
            lambda request: {"allowed": True, "patch": "W3t9XQ==", "patchType": "Other"},
            'unsupported patch type "Other"',
        ),
        (lambda request: {"allowed": True, "patch": "W10="}, "returned response.patch but not response.patchType"),
        (lambda request: {"allowed": True, "patchType": "JSONPatch"}, "response.patchType but not response.patch"),
    ],
)
async def test_an_unusable_answer_follows_the_failure_policy(
    store: Store, server: Server, admission: Admission, answer: Answer, why: str
) -> None:
    server.answers["a"] = answer
    await configure(store, server, "a", mutating=True)
    with pytest.raises(Internal) as refused:
        await admission.mutate(attributes())
    message = str(refused.value)
    assert message.startswith('Internal error occurred: failed calling webhook "a.example.org": ')
    assert why in message
    await configure(store, server, "a", mutating=True, failurePolicy="Ignore")
    given = attributes()
    assert await admission.mutate(given) is given.object


async def test_a_patch_that_does_not_fit_is_an_error_whatever_the_policy(
    store: Store, server: Server, admission: Admission
) -> None:
    server.answers["a"] = patching({"op": "replace", "path": "/no/such", "value": 1})
    await configure(store, server, "a", mutating=True, failurePolicy="Ignore")
    with pytest.raises(Internal, match=r"Internal error occurred: .*/no/such"):
        await admission.mutate(attributes())


async def test_a_webhook_that_takes_too_long_fails(store: Store, server: Server, admission: Admission) -> None:
    released = asyncio.Event()

    async def late(request: Json) -> Json:
        await released.wait()
        return {"allowed": True}

    server.answers["a"] = late
    await configure(store, server, "a", timeoutSeconds=0.05)
    with pytest.raises(Internal, match="context deadline exceeded"):
        await admission.validate(attributes())
    released.set()


async def test_a_refused_connection_is_a_failure(store: Store, server: Server, admission: Admission) -> None:
    await configure(store, server, "a", clientConfig={"url": "https://127.0.0.1:1/x", "caBundle": server.ca})
    with pytest.raises(Internal) as failed:
        await admission.validate(attributes())
    assert str(failed.value) == (
        'Internal error occurred: failed calling webhook "a.example.org": failed to call webhook: '
        'Post "https://127.0.0.1:1/x?timeout=5s": dial tcp 127.0.0.1:1: connect: connection refused'
    )


async def test_a_service_that_is_not_there_is_a_failure(store: Store, server: Server, admission: Admission) -> None:
    await configure(store, server, "a", clientConfig={"service": {"namespace": "ops", "name": "no"}})
    with pytest.raises(Internal, match=r'Post "https://no\.ops\.svc:443/\?timeout=5s": service "no" not found'):
        await admission.validate(attributes())


async def test_a_server_of_another_authority_is_not_trusted(store: Store, server: Server, admission: Admission) -> None:
    server.answers["a"] = allow
    other = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
    await configure(store, server, "a", clientConfig={"url": f"{server.url}/a", "caBundle": other})
    with pytest.raises(Internal, match="tls: failed to verify certificate"):
        await admission.validate(attributes())
    assert server.seen == []


@pytest.mark.parametrize(
    ("client", "why"),
    [
        ({"url": "http://127.0.0.1/x"}, "must begin with https://"),
        ({"url": "https://"}, "must begin with https://"),
        ({}, "neither url nor service"),
        ({"url": "https://127.0.0.1:1/x", "caBundle": "AAAA"}, "unable to load root certificates"),
    ],
)
async def test_a_configuration_that_can_not_work_says_why(
    store: Store, server: Server, admission: Admission, client: Json, why: str
) -> None:
    await configure(store, server, "a", clientConfig=client)
    with pytest.raises(Internal, match=why):
        await admission.validate(attributes())


async def test_an_endless_answer_is_cut_off(store: Store, server: Server) -> None:
    server.answers["a"] = lambda request: web.Response(body=b"x" * 10_000)
    caller = WebhookCaller(ServiceEndpoints(store).resolve)
    try:
        with pytest.raises(Exception, match="more than 100 bytes"):
            await caller.call(server.client("a"), b'{"request":{"uid":"1"}}', 5.0, 100)
    finally:
        await caller.close()
