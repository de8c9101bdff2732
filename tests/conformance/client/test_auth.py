"""Tokens, reviews, and what RBAC lets a user do."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from conformance.client.api import (
    CONFIGMAPS,
    NAMESPACES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Api,
    configmap,
    short,
    until,
)
from conformance.client.widget import widget
from homeport.api.meta import Resource, Unstructured
from homeport.client.config import Impersonation
from homeport.client.credential import Static, bearer
from homeport.client.errors import Forbidden, Invalid, Unauthorized
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, MergePatch, Query, Write

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
SELF_SUBJECT = Resource("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)
ACCESS = Resource("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
LOCAL_ACCESS = Resource("authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews")
SELF_ACCESS = Resource(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
SELF_RULES = Resource(
    "authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False
)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "Role", "roles")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
GROUP = "rbac.authorization.k8s.io"


async def allow(api: Api, user: str, *rules: dict[str, Any]) -> None:
    meta = {"name": f"role-{short()}", "namespace": api.ns}
    await api.client.create({"metadata": meta, "rules": list(rules)}, kind=ROLES)
    ref = {"apiGroup": GROUP, "kind": "Role", "name": meta["name"]}
    subject = {"apiGroup": GROUP, "kind": "User", "name": user}
    await api.client.create({"metadata": meta, "roleRef": ref, "subjects": [subject]}, kind=BINDINGS)


async def until_allowed(client: HttpClient, api: Api) -> None:
    """Real servers see a new binding a moment later."""

    async def look() -> bool | None:
        try:
            await client.list(CONFIGMAPS, api.query())
        except Forbidden:
            return None
        return True

    await until(look)


def rule(verbs: list[str], resources: list[str], groups: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return {"apiGroups": groups if groups is not None else [""], "resources": resources, "verbs": verbs, **more}


async def test_a_user_without_rights_sees_which_right_is_missing(api: Api, widgets: Resource) -> None:
    jane = api.as_user("jane", ("developers",))
    meta = {"name": "a", "namespace": api.ns}
    attempts = {
        "get": jane.get(CONFIGMAPS, api.key("a")),
        "list": jane.list(CONFIGMAPS, api.query()),
        "list everywhere": jane.list(CONFIGMAPS),
        "create": jane.create(configmap(api, "a"), kind=CONFIGMAPS),
        "replace": jane.replace({"metadata": meta}, kind=CONFIGMAPS),
        "patch": jane.patch(CONFIGMAPS, api.key("a"), MergePatch({})),
        "delete": jane.delete(CONFIGMAPS, api.key("a")),
        "deletecollection": jane.delete_all(CONFIGMAPS, api.query()),
        "widget": jane.get(widgets, api.key("a")),
        "widget status": jane.patch(widgets, api.key("a"), MergePatch({}), subresource="status"),
        "cluster-wide": jane.list(NAMESPACES),
        "unknown namespace": jane.get(CONFIGMAPS, Key("nowhere", "a")),
        "token": jane.create({"spec": {}}, kind=SERVICE_ACCOUNTS, key=api.key("default"), subresource="token"),
    }
    for label, attempt in attempts.items():
        error = await api.refusal(label, attempt)
        assert isinstance(error, Forbidden)
    with pytest.raises(Forbidden):
        async with jane.watch(CONFIGMAPS, api.query()):
            pass


async def test_a_role_lets_a_user_do_what_it_says(api: Api, widgets: Resource) -> None:
    await allow(
        api,
        "joe",
        rule(["get", "list", "watch", "create"], ["configmaps"]),
        rule(["get"], ["secrets"], resourceNames=["this"]),
        rule(["patch"], ["widgets/status"], [widgets.group]),
        rule(["*"], ["widgets"], [widgets.group]),
    )
    joe = api.as_user("joe")
    await until_allowed(joe, api)
    await joe.create(configmap(api, "a"), kind=CONFIGMAPS)
    assert (await joe.get(CONFIGMAPS, api.key("a"))).name == "a"
    await api.refusal("delete", joe.delete(CONFIGMAPS, api.key("a")))
    await api.refusal("other namespace", joe.list(CONFIGMAPS, Query(namespace="default")))
    for name in ("this", "that"):
        await api.client.create({"metadata": {"name": name, "namespace": api.ns}}, kind=SECRETS)
    assert (await joe.get(SECRETS, api.key("this"))).name == "this"
    await api.refusal("other name", joe.get(SECRETS, api.key("that")))
    await joe.create(widget("w", api.ns), kind=widgets)
    status = MergePatch({"status": {"phase": "x"}})
    assert (await joe.patch(widgets, api.key("w"), status, subresource="status"))["status"] == {"phase": "x"}
    await api.refusal("scale", joe.get(widgets, api.key("w"), subresource="scale"))


async def test_apply_needs_patch_and_create(api: Api) -> None:
    await allow(api, "ann", rule(["patch", "list"], ["configmaps"]))
    ann = api.as_user("ann")
    await until_allowed(ann, api)
    obj = {"metadata": {"name": "a", "namespace": api.ns}, "data": {"k": "v"}}
    await api.refusal("create by apply", ann.apply(obj, Write(field_manager="x"), kind=CONFIGMAPS))
    await api.client.create(configmap(api, "a"), kind=CONFIGMAPS)
    assert (await ann.apply(obj, Write(field_manager="x"), kind=CONFIGMAPS))["data"] == {"k": "v"}


async def test_nobody_grants_more_than_they_have(api: Api) -> None:
    await allow(api, "bob", rule(["create"], ["roles", "rolebindings"], [GROUP]), rule(["get", "list"], ["configmaps"]))
    bob = api.as_user("bob")
    await until_allowed(bob, api)
    meta = {"name": "mine", "namespace": api.ns}
    allowed = await bob.create({"metadata": meta, "rules": [rule(["get"], ["configmaps"])]}, kind=ROLES)
    assert allowed.name == "mine"
    more = {
        "metadata": {"name": "more", "namespace": api.ns},
        "rules": [rule(["get", "delete"], ["configmaps", "secrets"])],
    }
    await api.refusal("role", bob.create(more, kind=ROLES))
    ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"metadata": meta, "roleRef": ref, "subjects": [{"apiGroup": GROUP, "kind": "User", "name": "bob"}]}
    with pytest.raises(Forbidden) as caught:
        await bob.create(binding, kind=BINDINGS)
    assert caught.value.message.startswith(
        'rolebindings.rbac.authorization.k8s.io "mine" is forbidden: user "bob" (groups=["system:authenticated"]) '
        "is attempting to grant RBAC permissions not currently held:"
    )


async def test_rbac_objects_are_validated(api: Api) -> None:
    meta = {"name": "a", "namespace": api.ns}
    await api.outcome(
        "rule without verbs",
        api.client.create({"metadata": meta, "rules": [{"apiGroups": [""], "resources": ["x"]}]}, kind=ROLES),
    )
    await api.outcome(
        "rule without resources", api.client.create({"metadata": meta, "rules": [{"verbs": ["get"]}]}, kind=ROLES)
    )
    await api.outcome(
        "non-resource in a role",
        api.client.create({"metadata": meta, "rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}, kind=ROLES),
    )
    await api.outcome("binding without role", api.client.create({"metadata": meta, "roleRef": {}}, kind=BINDINGS))
    ref = {"apiGroup": GROUP, "kind": "Role", "name": "r"}
    await api.outcome(
        "odd subject",
        api.client.create(
            {"metadata": meta, "roleRef": ref, "subjects": [{"kind": "Robot", "name": "x"}]}, kind=BINDINGS
        ),
    )
    account = {"kind": "ServiceAccount", "name": "x"}
    await api.outcome(
        "account without namespace",
        api.client.create({"metadata": meta, "roleRef": ref, "subjects": [account]}, kind=BINDINGS),
    )
    await api.outcome(
        "binding",
        api.client.create(
            {"metadata": meta, "roleRef": ref, "subjects": [{"kind": "User", "name": "x"}]}, kind=BINDINGS
        ),
    )
    await api.outcome("other role", api.client.patch(BINDINGS, api.key("a"), MergePatch({"roleRef": {"name": "s"}})))


async def test_a_user_belongs_to_groups(api: Api) -> None:
    team = f"team-{short()}"
    meta = {"name": "team", "namespace": api.ns}
    await api.client.create({"metadata": meta, "rules": [rule(["list"], ["configmaps"])]}, kind=ROLES)
    ref = {"apiGroup": GROUP, "kind": "Role", "name": "team"}
    subjects = [{"apiGroup": GROUP, "kind": "Group", "name": team}]
    await api.client.create({"metadata": meta, "roleRef": ref, "subjects": subjects}, kind=BINDINGS)
    await until_allowed(api.as_user("member", (team,)), api)
    with pytest.raises(Forbidden):
        await api.as_user("stranger").list(CONFIGMAPS, api.query())


async def test_a_token_of_a_service_account_opens_its_doors(api: Api) -> None:
    await api.client.create({"metadata": {"name": "robot", "namespace": api.ns}}, kind=SERVICE_ACCOUNTS)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    made = await api.client.create(request, kind=SERVICE_ACCOUNTS, key=api.key("robot"), subresource="token")
    token = made["status"]["token"]
    assert token.count(".") == 2
    hidden = {**made, "status": {**made["status"], "token": "TOKEN"}}
    api.same("token", hidden)
    if not api.over_http:
        return
    await api.client.create(
        {"metadata": {"name": "r", "namespace": api.ns}, "rules": [rule(["list"], ["configmaps"])]}, kind=ROLES
    )
    ref = {"apiGroup": GROUP, "kind": "Role", "name": "r"}
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": api.ns}
    await api.client.create(
        {"metadata": {"name": "r", "namespace": api.ns}, "roleRef": ref, "subjects": [subject]}, kind=BINDINGS
    )
    config = api.http().config
    async with HttpClient(replace(config, credential=bearer(token))) as robot:
        await until_allowed(robot, api)
        await api.refusal("delete", robot.delete(CONFIGMAPS, api.key("a")))
        me = await robot.create({}, kind=SELF_SUBJECT)
        info = me["status"]["userInfo"]
        assert info["username"] == f"system:serviceaccount:{api.ns}:robot"
        assert sorted(info["groups"]) == [
            "system:authenticated",
            "system:serviceaccounts",
            f"system:serviceaccounts:{api.ns}",
        ]
        await api.client.delete(SERVICE_ACCOUNTS, api.key("robot"))

        async def refused() -> bool | None:
            try:
                await robot.list(CONFIGMAPS, api.query())
            except Unauthorized:
                return True
            return None

        await until(refused, 30)  # real servers remember an answer for ten seconds


async def test_token_requests_are_validated(api: Api) -> None:
    await api.client.create({"metadata": {"name": "robot", "namespace": api.ns}}, kind=SERVICE_ACCOUNTS)
    head = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    for label, spec in {
        "too short": {"expirationSeconds": 60},
        "too long": {"expirationSeconds": 1 << 33},
        "bound to nothing": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "none"}},
        "bound to an odd kind": {"boundObjectRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "none"}},
    }.items():
        attempt = api.client.create(
            {**head, "spec": spec}, kind=SERVICE_ACCOUNTS, key=api.key("robot"), subresource="token"
        )
        await api.refusal(label, attempt)
    await api.refusal(
        "no account",
        api.client.create({**head, "spec": {}}, kind=SERVICE_ACCOUNTS, key=api.key("none"), subresource="token"),
    )


async def test_a_token_is_reviewed(api: Api) -> None:
    await api.client.create({"metadata": {"name": "robot", "namespace": api.ns}}, kind=SERVICE_ACCOUNTS)
    head = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    made = await api.client.create(
        {**head, "spec": {}}, kind=SERVICE_ACCOUNTS, key=api.key("robot"), subresource="token"
    )
    review = await api.client.create({"spec": {"token": made["status"]["token"]}}, kind=TOKEN_REVIEWS)
    status = review["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == f"system:serviceaccount:{api.ns}:robot"
    extra = status["user"].get("extra", {})
    assert set(extra) == {"authentication.kubernetes.io/credential-id"}
    bad = await api.client.create({"spec": {"token": "nonsense"}}, kind=TOKEN_REVIEWS)
    assert "authenticated" not in bad["status"]
    await api.refusal("empty", api.client.create({"spec": {}}, kind=TOKEN_REVIEWS))
    audience = ["other"]
    for_others = await api.client.create(
        {"spec": {"token": made["status"]["token"], "audiences": audience}}, kind=TOKEN_REVIEWS
    )
    assert not for_others["status"].get("authenticated", False)


def asks(api: Api, verb: str, resource: str, **more: str) -> dict[str, Any]:
    return {"resourceAttributes": {"verb": verb, "resource": resource, "namespace": api.ns, **more}}


async def test_access_is_reviewed(api: Api) -> None:
    await allow(api, "eve", rule(["get", "list"], ["configmaps"]))
    eve = {"user": "eve"}

    async def allowed() -> Unstructured | None:
        got: Unstructured = await api.client.create({"spec": {**asks(api, "get", "configmaps"), **eve}}, kind=ACCESS)
        return got if got["status"]["allowed"] else None

    got = await until(allowed)
    assert got["status"]["reason"].startswith("RBAC: allowed by RoleBinding ")
    denied = await api.client.create({"spec": {**asks(api, "delete", "configmaps"), **eve}}, kind=ACCESS)
    api.same("denied", denied)
    elsewhere = await api.client.create(
        {"spec": {**asks(api, "get", "configmaps", namespace="default"), **eve}}, kind=ACCESS
    )
    assert elsewhere["status"]["allowed"] is False
    url = {
        "spec": {
            "nonResourceAttributes": {"path": "/healthz", "verb": "get"},
            "user": "eve",
            "groups": ["system:authenticated"],
        }
    }
    assert (await api.client.create(url, kind=ACCESS))["status"]["allowed"] is True
    local = {"metadata": {"namespace": api.ns}, "spec": {**asks(api, "get", "configmaps"), **eve}}
    assert (await api.client.create(local, kind=LOCAL_ACCESS))["status"]["allowed"] is True
    await api.refusal("nobody", api.client.create({"spec": asks(api, "get", "configmaps")}, kind=ACCESS))
    await api.refusal("nothing", api.client.create({"spec": {"user": "eve"}}, kind=ACCESS))
    both = {"spec": {**asks(api, "get", "x"), "nonResourceAttributes": {"path": "/"}, **eve}}
    await api.refusal("both", api.client.create(both, kind=ACCESS))
    wrong = {"metadata": {"namespace": api.ns}, "spec": {**asks(api, "get", "configmaps", namespace="default"), **eve}}
    await api.refusal("local of another namespace", api.client.create(wrong, kind=LOCAL_ACCESS))


async def test_users_review_themselves(api: Api) -> None:
    await allow(api, "kim", rule(["get", "list"], ["configmaps"]), rule(["get"], ["secrets"], resourceNames=["one"]))
    kim = api.as_user("kim", ("g1", "g2"))
    await until_allowed(kim, api)
    yes = await kim.create({"spec": asks(api, "get", "configmaps")}, kind=SELF_ACCESS)
    assert yes["status"]["allowed"] is True
    no = await kim.create({"spec": asks(api, "create", "configmaps")}, kind=SELF_ACCESS)
    api.same("not allowed", no)
    me = await kim.create({}, kind=SELF_SUBJECT)
    info = me["status"]["userInfo"]
    assert info["username"] == "kim"
    assert sorted(info["groups"]) == ["g1", "g2", "system:authenticated"]
    rules = await kim.create({"spec": {"namespace": api.ns}}, kind=SELF_RULES)
    status = rules["status"]
    assert rule(["get", "list"], ["configmaps"]) in [
        {n: r[n] for n in ("apiGroups", "resources", "verbs")} for r in status["resourceRules"]
    ]
    assert any(r.get("resourceNames") == ["one"] for r in status["resourceRules"])
    assert any("/healthz" in r["nonResourceURLs"] for r in status["nonResourceRules"])
    assert status["incomplete"] is False
    await api.refusal("no namespace", kim.create({"spec": {}}, kind=SELF_RULES))


async def test_anonymous_users_and_bad_tokens(api: Api) -> None:
    config = api.http().config
    async with HttpClient(replace(config, credential=Static())) as nobody:
        await api.refusal("anonymous", nobody.list(CONFIGMAPS, api.query()))
        api.same("anonymous path", (await nobody.raw("GET", "/apis")).json())
        assert (await nobody.raw("GET", "/healthz")).body == b"ok"
        assert (await nobody.raw("GET", "/version")).status == 200
    async with HttpClient(replace(config, credential=bearer("nonsense"))) as liar:
        error = await api.refusal("bad token", liar.list(CONFIGMAPS, api.query()))
        assert isinstance(error, Unauthorized)


async def test_aggregated_cluster_roles_gather_rules(api: Api) -> None:
    """The gathering is a controller's work; the server keeps what it is told."""
    name = f"agg-{api.ns}"
    obj = {
        "metadata": {"name": name},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]},
        "rules": [],
    }
    api.same("role", await api.client.create(obj, kind=CLUSTER_ROLES))
    await api.client.delete(CLUSTER_ROLES, Key("", name))


async def test_the_default_roles_are_there(api: Api) -> None:
    for name in (
        "cluster-admin",
        "admin",
        "edit",
        "view",
        "system:basic-user",
        "system:discovery",
        "system:public-info-viewer",
    ):
        role = await api.client.get(CLUSTER_ROLES, Key("", name))
        assert role.metadata["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
    admin = await api.client.get(CLUSTER_BINDINGS, Key("", "cluster-admin"))
    assert admin["subjects"] == [{"kind": "Group", "apiGroup": GROUP, "name": "system:masters"}]
    assert admin["roleRef"] == {"apiGroup": GROUP, "kind": "ClusterRole", "name": "cluster-admin"}


async def test_impersonation_takes_a_user(api: Api) -> None:
    config = api.http().config
    for label, asked in {
        "group": Impersonation(groups=("devs",)),
        "uid": Impersonation(uid="7"),
        "extra": Impersonation(extra=(("scopes", ("view",)),)),
    }.items():
        async with HttpClient(replace(config, impersonate=asked)) as client:
            answer = await client.raw("GET", CONFIGMAPS.path(api.ns))
            api.same(label, answer.status)


async def test_whoever_changes_a_role_needs_what_it_grants(api: Api) -> None:
    """A label or an aggregation rule is enough to have rules gathered elsewhere."""
    jane = api.as_user("jane")
    prefix = f"r-{short()}"
    grant = [rule(["get", "list"], ["configmaps"]), rule(["*"], ["clusterroles"], [GROUP], resourceNames=[])]
    grant[1]["verbs"] = ["get", "create", "update", "patch"]
    await api.client.create({"metadata": {"name": prefix}, "rules": grant}, kind=CLUSTER_ROLES)
    ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": prefix}
    subject = {"apiGroup": GROUP, "kind": "User", "name": "jane"}
    await api.client.create(
        {"metadata": {"name": prefix}, "roleRef": ref, "subjects": [subject]}, kind=CLUSTER_BINDINGS
    )
    await until_allowed(jane, api)
    gather = {"clusterRoleSelectors": [{"matchLabels": {prefix: "yes"}}]}
    weak, strong = [rule(["get"], ["configmaps"])], [rule(["delete"], ["nodes"])]
    for name, spec in {"weak": weak, "strong": strong}.items():
        await api.client.create({"metadata": {"name": f"{prefix}-{name}"}, "rules": spec}, kind=CLUSTER_ROLES)
    gathering = {"metadata": {"name": f"{prefix}-gathering"}, "rules": [], "aggregationRule": gather}
    await api.client.create(gathering, kind=CLUSTER_ROLES)
    label = {"metadata": {"labels": {"x": "y"}}}
    patches: dict[str, tuple[str, dict[str, Any]]] = {
        "a label on a weak role": ("weak", label),
        "a label on a strong role": ("strong", label),
        "an owner of a strong role": ("strong", {"metadata": {"finalizers": ["a.io/b"]}}),
        "nothing on a strong role": ("strong", {}),
        "a label on a role that gathers": ("gathering", label),
        "gathering no more": ("gathering", {"aggregationRule": None}),
        "gathering from now on": ("weak", {"aggregationRule": gather}),
        "gathering nothing": ("weak", {"aggregationRule": {"clusterRoleSelectors": []}}),
    }
    for what, (name, patch) in patches.items():
        path = CLUSTER_ROLES.path("", f"{prefix}-{name}")
        body = json.dumps(patch).encode()
        answer = await jane.raw("PATCH", path, body, content_type="application/merge-patch+json")
        told = answer.json().get("message", "").replace(prefix, "ROLE") if answer.status != 200 else ""
        api.same(what, [answer.status, told])
    for name in ("weak", "strong", "gathering"):
        path = CLUSTER_ROLES.path("", f"{prefix}-{name}")
        await api.http().raw(
            "PATCH", path, b'{"metadata":{"finalizers":null}}', content_type="application/merge-patch+json"
        )


CERTIFICATE_REQUESTS = Resource(
    "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False
)
VERDICT = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "r"}]}}
FAILURE = {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "r"}]}}


def certificate_request(api: Api, signer: str, *organizations: str) -> dict[str, Any]:
    subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject)
    pem = request.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(Encoding.PEM)
    spec = {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": ["client auth"]}
    return {"metadata": {"name": f"csr-{api.ns}"}, "spec": spec}


async def test_decisions_on_certificate_requests_take_rights_on_the_signer(api: Api) -> None:
    key, user = Key("", f"csr-{api.ns}"), f"jane-{short()}"
    jane = api.as_user(user)
    await api.client.create(certificate_request(api, "example.com/x"), kind=CERTIFICATE_REQUESTS)
    try:
        await _grant(api, user, rule(["*"], ["certificatesigningrequests", "*/approval", "*/status"], ["*"]))
        await _until_granted(jane, key)
        for label, subresource, patch in (("approve", "approval", VERDICT), ("sign", "status", FAILURE)):
            refused = jane.patch(CERTIFICATE_REQUESTS, key, MergePatch(patch), subresource=subresource)
            await api.refusal(label, refused)
        await _grant(api, user, rule(["approve"], ["signers"], ["*"], resourceNames=["example.com/*"]))

        async def approved() -> bool | None:
            try:
                await jane.patch(CERTIFICATE_REQUESTS, key, MergePatch(VERDICT), subresource="approval")
            except Forbidden:
                return None
            return True

        await until(approved)  # real servers see a new binding a moment later
    finally:
        await api.client.delete(CERTIFICATE_REQUESTS, key)


async def _grant(api: Api, user: str, *rules: dict[str, Any]) -> None:
    meta = {"name": f"role-{short()}"}
    await api.client.create({"metadata": meta, "rules": list(rules)}, kind=CLUSTER_ROLES)
    ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": meta["name"]}
    subject = {"apiGroup": GROUP, "kind": "User", "name": user}
    await api.client.create({"metadata": meta, "roleRef": ref, "subjects": [subject]}, kind=CLUSTER_BINDINGS)


async def _until_granted(client: HttpClient, key: Key) -> None:
    async def look() -> bool | None:
        try:
            await client.patch(CERTIFICATE_REQUESTS, key, MergePatch({}))
        except Forbidden:
            return None
        return True

    await until(look)


async def test_certificates_of_masters_are_not_asked_for(api: Api) -> None:
    wanted = certificate_request(api, "kubernetes.io/kube-apiserver-client", "devs", "system:masters")
    await api.refusal("masters", api.client.create(wanted, kind=CERTIFICATE_REQUESTS))


@pytest.mark.parametrize(
    "text",
    [
        b"x",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"-----BEGIN X-----\nAAAA\n-----END X-----\n",
    ],
)
async def test_a_certificate_that_is_none_is_not_stored(api: Api, text: bytes) -> None:
    key = Key("", f"csr-{api.ns}")
    await api.client.create(certificate_request(api, "example.com/x"), kind=CERTIFICATE_REQUESTS)
    try:
        patch = MergePatch({"status": {"certificate": base64.b64encode(text).decode()}})
        with pytest.raises(Invalid) as caught:
            await api.client.patch(CERTIFICATE_REQUESTS, key, patch, subresource="status")
        assert [cause.field for cause in caught.value.causes] == ["status.certificate"]
    finally:
        await api.client.delete(CERTIFICATE_REQUESTS, key)
