from __future__ import annotations

from typing import Any

import pytest

from homeport.apiserver.auth.authn import Authenticator
from homeport.apiserver.auth.certificate import make_key
from homeport.apiserver.auth.rbac.rbac import Rbac
from homeport.apiserver.auth.review import Reviews
from homeport.apiserver.auth.token import openid
from homeport.apiserver.auth.token.request import TokenRequests
from homeport.apiserver.auth.token.serviceaccount import ISSUER, ServiceAccounts
from homeport.apiserver.kinds import builtin_kinds
from homeport.apiserver.registry import Call, Registry
from homeport.apiserver.request import Context, User
from homeport.apiserver.resource import Catalog
from homeport.apiserver.verb.admission import Admission
from homeport.client.errors import BadRequest, Conflict, Invalid, MethodNotAllowed, NotFound
from homeport.store import Store
from unit.apiserver.auth.policy_store import bind, put, role, rule

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
ANNA = User("anna", ("devs", "system:authenticated"), "7", {"scopes": ("a",)})
AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"


class Server:
    def __init__(self, store: Store, rbac: Rbac) -> None:
        catalog = Catalog()
        for served in builtin_kinds():
            catalog.add(served)
        self.registry = Registry(store, catalog, Admission(), clock=lambda: NOW)
        self.accounts = ServiceAccounts(make_key(), store, lambda: NOW)
        authenticator = Authenticator(store, self.accounts, now=lambda: NOW)
        Reviews(authenticator, rbac, self.registry.now).install(self.registry)
        TokenRequests(self.accounts, store, self.registry.now).install(self.registry)

    async def post(
        self, group: str, plural: str, body: Any, *, namespace: str = "", method: str = "POST"
    ) -> dict[str, Any]:
        return await self._ask(group, plural, "", namespace, "", body, method)

    async def token(self, spec: Any, name: str = "robot", **body: Any) -> dict[str, Any]:
        return await self._ask("", "serviceaccounts", "token", "ops", name, {"spec": spec, **body}, "POST")

    async def _ask(
        self, group: str, plural: str, subresource: str, namespace: str, name: str, body: Any, method: str
    ) -> dict[str, Any]:
        served, at = self.registry.find(group, "v1", plural)
        connector = self.registry.connector(served, subresource)
        assert connector is not None
        ctx = Context(ANNA, user_agent="test/1")
        answer = await connector(Call(ctx, served, at, namespace, name, method, body, {}))
        assert isinstance(answer, dict)
        return answer


@pytest.fixture
async def server(store: Store, rbac: Rbac) -> Server:
    await put(store, "serviceaccounts", {"metadata": {"namespace": "ops", "name": "robot", "uid": "u-1"}})
    return Server(store, rbac)


# -- tokens ----------------------------------------------------------------------------------------------------


async def test_a_token_request_gives_a_token_that_a_review_knows(server: Server) -> None:
    answer = await server.token({"expirationSeconds": 600})
    assert answer["kind"] == "TokenRequest"
    assert answer["metadata"]["uid"] == "u-1"
    assert answer["metadata"]["managedFields"][0]["subresource"] == "token"
    assert answer["spec"] == {"audiences": [ISSUER], "expirationSeconds": 600, "boundObjectRef": None}
    assert answer["status"]["expirationTimestamp"] == "2027-01-15T08:10:00Z"
    review = await server.post(AUTHENTICATION, "tokenreviews", {"spec": {"token": answer["status"]["token"]}})
    assert review["kind"] == "TokenReview"
    assert review["status"]["authenticated"] is True
    assert review["status"]["audiences"] == [ISSUER]
    user = review["status"]["user"]
    assert (user["username"], user["uid"]) == ("system:serviceaccount:ops:robot", "u-1")
    assert user["groups"] == ["system:serviceaccounts", "system:serviceaccounts:ops", "system:authenticated"]
    assert review["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {"f:token": {}}}


async def test_a_review_looks_at_audiences(server: Server) -> None:
    token = (await server.token({"audiences": ["vault"]}))["status"]["token"]
    spec = {"token": token, "audiences": ["vault", "x"]}
    assert (await server.post(AUTHENTICATION, "tokenreviews", {"spec": spec}))["status"]["audiences"] == ["vault"]
    refused = await server.post(AUTHENTICATION, "tokenreviews", {"spec": {"token": token}})
    assert refused["status"] == {
        "user": {},
        "error": f'[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["{ISSUER}"]]',
    }


async def test_a_review_of_nonsense_says_so(server: Server) -> None:
    review = await server.post(AUTHENTICATION, "tokenreviews", {"spec": {"token": "nonsense"}})
    assert review["status"] == {"user": {}, "error": "invalid bearer token"}
    with pytest.raises(BadRequest, match="token is required for TokenReview in authentication"):
        await server.post(AUTHENTICATION, "tokenreviews", {"spec": {}})


async def test_a_token_is_bound_to_what_the_request_names(server: Server, store: Store) -> None:
    await put(store, "secrets", {"metadata": {"namespace": "ops", "name": "s", "uid": "u-2"}})
    reference = {"kind": "Secret", "apiVersion": "v1", "name": "s"}
    answer = await server.token({"boundObjectRef": reference})
    assert answer["spec"]["boundObjectRef"] == reference
    await store.delete("secrets", "ops/s", lambda revision: b"{}", expect=None)
    review = await server.post(AUTHENTICATION, "tokenreviews", {"spec": {"token": answer["status"]["token"]}})
    assert review["status"]["error"] == "[invalid bearer token, bound secret does not exist]"


async def test_a_pods_token_names_its_node(server: Server, store: Store) -> None:
    await put(store, "nodes", {"metadata": {"name": "n", "uid": "u-3"}})
    pod = {"metadata": {"namespace": "ops", "name": "p", "uid": "u-4"}, "spec": {"nodeName": "n"}}
    await put(store, "pods", {**pod, "spec": {**pod["spec"], "serviceAccountName": "robot"}})
    answer = await server.token({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "u-4"}})
    review = await server.post(AUTHENTICATION, "tokenreviews", {"spec": {"token": answer["status"]["token"]}})
    extra = review["status"]["user"]["extra"]
    assert extra["authentication.kubernetes.io/node-name"] == ["n"]
    assert extra["authentication.kubernetes.io/pod-uid"] == ["u-4"]
    await put(store, "pods", {**pod, "spec": {"serviceAccountName": "other"}})
    with pytest.raises(BadRequest, match="pod running with different serviceaccount name"):
        await server.token({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}})


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ({"expirationSeconds": 5}, Invalid, "Invalid value: 5: may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": 1 << 33}, Invalid, "larger than 2^32 seconds"),
        ({"expirationSeconds": "1h"}, BadRequest, "spec.expirationSeconds"),
        ({"audiences": "vault"}, BadRequest, "spec.audiences"),
        ({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "no"}}, NotFound, 'secrets "no" not found'),
        ({"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "c"}}, BadRequest, "of type /v1, Kind=C"),
        ({"boundObjectRef": "s"}, BadRequest, "spec.boundObjectRef"),
        ("x", BadRequest, "one TokenRequest"),
    ],
)
async def test_a_token_request_that_is_not_in_order_is_refused(
    server: Server, spec: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as refused:
        await server.token(spec)
    assert message in str(refused.value)


async def test_a_token_request_for_something_else_is_refused(server: Server, store: Store) -> None:
    with pytest.raises(NotFound, match='serviceaccounts "no" not found'):
        await server.token({}, name="no")
    with pytest.raises(BadRequest, match="does not match the name on the URL"):
        await server.token({}, metadata={"name": "other"})
    with pytest.raises(BadRequest, match="cannot be handled as a TokenRequest"):
        await server.token({}, kind="Secret")
    await put(store, "secrets", {"metadata": {"namespace": "ops", "name": "s", "uid": "u-2"}})
    with pytest.raises(Conflict, match="does not match the UID in record"):
        await server.token({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "u-9"}})


async def test_others_can_check_tokens_with_the_published_key(server: Server) -> None:
    (key,) = openid.keys(server.accounts)["keys"]
    assert (key["kty"], key["crv"], key["alg"]) == ("EC", "P-256", "ES256")
    configuration = openid.configuration(server.accounts, "https://127.0.0.1:6443")
    assert configuration["jwks_uri"] == "https://127.0.0.1:6443/openid/v1/jwks"
    assert configuration["issuer"] == ISSUER


# -- access ----------------------------------------------------------------------------------------------------


async def test_users_can_review_themselves(server: Server) -> None:
    assert await server.post(AUTHENTICATION, "selfsubjectreviews", {}) == {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": "2027-01-15T08:00:00Z"},
        "status": {
            "userInfo": {
                "username": "anna",
                "uid": "7",
                "groups": ["devs", "system:authenticated"],
                "extra": {"scopes": ["a"]},
            }
        },
    }


async def test_an_access_review_tells_yes_and_no(server: Server, store: Store) -> None:
    await role(store, "r", rule("get", "-", "pods"))
    await bind(store, "b", "ClusterRole/r", "Group/devs", namespace="ops")
    asked = {"verb": "get", "resource": "pods", "namespace": "ops"}
    spec = {"user": "ben", "groups": ["devs"], "resourceAttributes": asked}
    review = await server.post(AUTHORIZATION, "subjectaccessreviews", {"spec": spec})
    assert review["status"] == {
        "allowed": True,
        "reason": 'RBAC: allowed by RoleBinding "b/ops" of ClusterRole "r" to Group "devs"',
    }
    assert review["spec"] == spec
    denied = await server.post(AUTHORIZATION, "subjectaccessreviews", {"spec": {**spec, "groups": ["x"]}})
    assert denied["status"] == {"allowed": False}
    own = await server.post(AUTHORIZATION, "selfsubjectaccessreviews", {"spec": {"resourceAttributes": asked}})
    assert own["status"]["allowed"] is True
    local = await server.post(AUTHORIZATION, "localsubjectaccessreviews", {"spec": spec}, namespace="ops")
    assert local["status"]["allowed"] is True
    assert local["metadata"]["namespace"] == "ops"


async def test_an_access_review_of_a_path(server: Server) -> None:
    spec = {"user": "x", "groups": ["system:masters"], "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    assert (await server.post(AUTHORIZATION, "subjectaccessreviews", {"spec": spec}))["status"] == {"allowed": True}
    spec["groups"] = []
    assert (await server.post(AUTHORIZATION, "subjectaccessreviews", {"spec": spec}))["status"] == {"allowed": False}


@pytest.mark.parametrize(
    ("plural", "spec", "message"),
    [
        (
            "subjectaccessreviews",
            {},
            '.authorization.k8s.io "" is invalid: [spec: Invalid value: null: exactly one of nonResourceAttributes or '
            'resourceAttributes must be specified, spec.user: Invalid value: "": at least one of user or group must be '
            "specified]",
        ),
        (
            "subjectaccessreviews",
            {"user": "x", "resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/"}},
            '.authorization.k8s.io "" is invalid: spec: Invalid value: {"Path":"/","Verb":""}: exactly one of '
            "nonResourceAttributes or resourceAttributes must be specified",
        ),
        (
            "localsubjectaccessreviews",
            {"user": "x", "resourceAttributes": {"verb": "get", "namespace": "other"}},
            '.authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "other": must match '
            "metadata.namespace",
        ),
    ],
)
async def test_an_access_review_that_is_not_in_order_is_refused(
    server: Server, plural: str, spec: dict[str, Any], message: str
) -> None:
    namespace = "ops" if plural.startswith("local") else ""
    with pytest.raises(Invalid) as refused:
        await server.post(AUTHORIZATION, plural, {"spec": spec}, namespace=namespace)
    assert str(refused.value) == message


async def test_one_can_ask_for_ones_rules(server: Server, store: Store) -> None:
    await role(store, "r", rule("get", "-", "pods", names="a"), rule("get", urls="/metrics"))
    await bind(store, "b", "ClusterRole/r", "User/anna")
    await bind(store, "c", "ClusterRole/gone", "User/anna")
    review = await server.post(AUTHORIZATION, "selfsubjectrulesreviews", {"spec": {"namespace": "ops"}})
    assert review["status"] == {
        "resourceRules": [rule("get", "-", "pods", names="a")],
        "nonResourceRules": [rule("get", urls="/metrics")],
        "incomplete": False,
        "evaluationError": 'clusterrole.rbac.authorization.k8s.io "gone" not found',
    }
    with pytest.raises(BadRequest, match="no namespace on request"):
        await server.post(AUTHORIZATION, "selfsubjectrulesreviews", {"spec": {}})


@pytest.mark.parametrize("body", [None, [], "x", {"kind": "Pod"}, {"spec": 5}, {"spec": {"token": 5}}])
async def test_a_body_of_another_shape_is_a_bad_request(server: Server, body: Any) -> None:
    with pytest.raises(BadRequest):
        await server.post(AUTHENTICATION, "tokenreviews", body)


async def test_reviews_are_only_posted(server: Server) -> None:
    with pytest.raises(MethodNotAllowed):
        await server.post(AUTHENTICATION, "tokenreviews", None, method="GET")
