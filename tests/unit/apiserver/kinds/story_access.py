"""Stories about roles, leases, webhook configurations, events and APIServices."""

from __future__ import annotations

from collections.abc import Iterator

from unit.apiserver.kinds.kind_story import Json, Step, Story, check, delete, get, merge, post, put

RBAC = "/apis/rbac.authorization.k8s.io/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MUTATING = VALIDATING.replace("validating", "mutating")
EVENTS, NEW_EVENTS = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events"


def roles() -> Iterator[Step]:
    namespaced = f"{RBAC}/namespaces/default"
    rules: list[Json] = [
        {"verbs": []},
        {"verbs": ["get"], "nonResourceURLs": ["/x"]},
        {"verbs": ["get"], "apiGroups": [""]},
    ]
    yield check(f"{namespaced}/roles", {"metadata": {"name": "a:b"}, "rules": rules})
    yield check(f"{namespaced}/roles", {"metadata": {"name": "a/b"}})
    yield post(f"{namespaced}/roles", {"metadata": {"name": "a"}, "rules": []})
    both: Json = {"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["x"], "apiGroups": [""]}
    yield check(f"{RBAC}/clusterroles", {"metadata": {"name": "a"}, "rules": [both]})
    for selectors in ([], [{"matchLabels": {"a b": "c"}}]):
        body: Json = {"metadata": {"name": "a"}, "aggregationRule": {"clusterRoleSelectors": selectors}}
        yield check(f"{RBAC}/clusterroles", body)
    yield put(f"{RBAC}/clusterroles/cr:x", {"metadata": {"name": "cr:x"}, "rules": []})
    yield delete(f"{RBAC}/clusterroles/cr:x")
    yield check(f"{namespaced}/rolebindings", {"metadata": {"name": "a"}})
    subjects: list[Json] = [
        {"kind": "Foo", "name": ""},
        {"kind": "ServiceAccount", "name": "A_"},
        {"kind": "User", "name": "u", "apiGroup": "z"},
        {"kind": "ServiceAccount", "name": "s", "apiGroup": "z", "namespace": "n"},
    ]
    wrong: Json = {"roleRef": {"apiGroup": "x", "kind": "Y", "name": ""}, "subjects": subjects}
    yield check(f"{namespaced}/rolebindings", {"metadata": {"name": "a"}, **wrong})
    yield check(f"{RBAC}/clusterrolebindings", {"metadata": {"name": "a"}, "roleRef": {"kind": "Role", "name": "x"}})
    users: list[Json] = [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "default"}]
    good: Json = {"roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}, "subjects": users}
    yield post(f"{RBAC}/clusterrolebindings", {"metadata": {"name": "a"}, **good})
    yield merge(f"{RBAC}/clusterrolebindings/a", {"roleRef": {"name": "edit"}})


def leases() -> Iterator[Step]:
    wrong: Json = {"leaseDurationSeconds": 0, "leaseTransitions": -1, "holderIdentity": ""}
    yield check(LEASES, {"metadata": {"name": "a"}, "spec": wrong})
    yield check(LEASES, {"metadata": {"name": "a"}, "spec": {"strategy": "x", "preferredHolder": "b"}})
    held: Json = {"holderIdentity": "x", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z"}
    yield put(f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": held})
    yield put(f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": held})
    yield merge(f"{LEASES}/l", {"spec": {"renewTime": "2020-01-01T00:00:01.000000Z"}})
    yield delete(f"{LEASES}/l")


def webhooks() -> Iterator[Step]:
    good: Json = {
        "name": "a.b.c",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://x/"},
    }

    def hook(**fields: object) -> Step:
        return check(VALIDATING, {"metadata": {"name": "a"}, "webhooks": [{**good, **fields}]})

    yield check(VALIDATING, {"metadata": {"name": "a"}, "webhooks": [{}]})
    yield check(VALIDATING, {"metadata": {"name": "a"}})
    yield hook()
    yield check(MUTATING, {"metadata": {"name": "a"}, "webhooks": [good]})
    yield check(MUTATING, {"metadata": {"name": "a"}, "webhooks": [{**good, "reinvocationPolicy": "x"}]})
    yield check(VALIDATING, {"metadata": {"name": "a"}, "webhooks": [good, good]})
    service = {"name": "a", "namespace": "b"}
    for config in (
        {"url": "http://x/"},
        {"url": "https://u:p@x/?a=b#c"},
        {"url": "https://x", "service": service},
        {},
        {"service": {"name": "", "namespace": "", "path": "x//y", "port": 99999}},
        {"service": service, "caBundle": "YQ=="},
    ):
        yield hook(clientConfig=config)
    yield hook(
        name="ab",
        sideEffects="Some",
        admissionReviewVersions=["v9"],
        timeoutSeconds=60,
        failurePolicy="x",
        matchPolicy="y",
    )
    yield hook(admissionReviewVersions=[])
    yield hook(rules=[{"operations": [], "apiGroups": [], "apiVersions": [], "resources": []}])
    stars: Json = {"operations": ["*", "CREATE"], "apiGroups": ["*", "a"], "apiVersions": ["*", ""]}
    yield hook(rules=[{**stars, "resources": ["*", "pods"], "scope": "x"}])
    other: Json = {"operations": ["X"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["*/*", "pods/status"]}
    yield hook(rules=[other])
    yield hook(namespaceSelector={"matchExpressions": [{"key": "a", "operator": "X"}]})
    conditions: list[Json] = [
        {"name": "", "expression": ""},
        {"name": "a b", "expression": "true"},
        {"name": "a", "expression": "true"},
        {"name": "a", "expression": "true"},
    ]
    yield hook(matchConditions=conditions)


def events() -> Iterator[Step]:
    about: Json = {"kind": "Pod", "name": "p", "namespace": "default"}
    moment = "2020-01-01T00:00:00.000000Z"
    yield check(EVENTS, {"metadata": {"name": "a"}})
    yield check(EVENTS, {"metadata": {"name": "a"}, "involvedObject": {"kind": "Node", "name": "n"}})
    yield check(EVENTS, {"metadata": {"name": "a"}, "involvedObject": {**about, "namespace": "other"}})
    yield check(NEW_EVENTS, {"metadata": {"name": "a"}})
    full: Json = {"eventTime": moment, "type": "Normal", "reason": "r", "action": "a", "reportingInstance": "i"}
    full |= {"reportingController": "a.b/c", "regarding": about}
    yield check(NEW_EVENTS, {"metadata": {"name": "a"}, **full, "deprecatedCount": 1})
    old: Json = {"involvedObject": about, "reason": "R", "message": "m", "type": "Normal", "count": 3}
    old |= {"source": {"component": "c", "host": "h"}, "firstTimestamp": "2020-01-01T00:00:00Z"}
    yield post(EVENTS, {"metadata": {"name": "e1"}, **old})
    yield get(f"{NEW_EVENTS}/e1")
    series = {"count": 2, "lastObservedTime": moment}
    yield post(
        NEW_EVENTS, {"metadata": {"name": "e2"}, **full, "related": {"name": "y"}, "note": "n", "series": series}
    )
    yield get(f"{EVENTS}/e2")
    yield merge(f"{NEW_EVENTS}/e2", {"reason": "z"})
    yield merge(f"{NEW_EVENTS}/e2", {"series": {"count": 3}})
    yield merge(f"{EVENTS}/e1", {"reason": "z", "type": "Foo"})
    yield get(f"{EVENTS}?fieldSelector=involvedObject.name=p,reason=z,type=Foo,source=c,reportingComponent=")
    yield get(f"{NEW_EVENTS}?fieldSelector=regarding.name=p,reportingController=a.b/c")
    yield get(f"{EVENTS}?fieldSelector=foo=p")
    yield delete(f"{NEW_EVENTS}/e1")


def api_services() -> Iterator[Step]:
    all_ = "/apis/apiregistration.k8s.io/v1/apiservices"
    yield check(all_, {"metadata": {"name": "x"}})
    spec: Json = {"group": "a.b", "version": "v1", "versionPriority": 0, "groupPriorityMinimum": 99999}
    yield check(all_, {"metadata": {"name": "v1.a.b"}, "spec": spec})
    good: Json = {"versionPriority": 1, "groupPriorityMinimum": 10, "service": {"namespace": "default", "name": "x"}}
    yield check(all_, {"metadata": {"name": "v1.a.b"}, "spec": {**spec, **good, "insecureSkipTLSVerify": True}})


STORIES: dict[str, Story] = {
    "roles": roles,
    "leases": leases,
    "webhooks": webhooks,
    "events": events,
    "api_services": api_services,
}
