"""Requests that look enough like real ones to get far, and are wrong enough to hurt."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "WATCH")
SEGMENTS = (
    "api", "apis", "v1", "apps", "example.com", "namespaces", "default", "kube-system", "nosuch", "pods", "configmaps",
    "secrets", "widgets", "deployments", "customresourcedefinitions", "apiextensions.k8s.io", "nodes", "events",
    "serviceaccounts", "services", "status", "scale", "log", "token", "eviction", "finalize", "watch", "proxy", "a", "b", "%2e%2e", "..", "%00", "%ff",
    "%2F", "a%20b", "ä", "*", "openapi", "v2", "v3", "healthz", "livez", "readyz", "metrics", "version",
    "rbac.authorization.k8s.io", "clusterroles", "rolebindings", "leases", "coordination.k8s.io",
    "authorization.k8s.io", "selfsubjectaccessreviews", "authentication.k8s.io", "tokenreviews",
    "admissionregistration.k8s.io", "validatingwebhookconfigurations",
)  # fmt: skip
PLURALS = (
    "/api/v1/namespaces", "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/services", "/api/v1/nodes",
    "/apis/apps/v1/namespaces/default/deployments", "/apis/example.com/v1/namespaces/default/widgets",
    "/apis/example.com/v1/widgets", "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/batch/v1/namespaces/default/jobs",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/api/v1/namespaces/default/serviceaccounts",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "/apis/events.k8s.io/v1/namespaces/default/events",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
)  # fmt: skip
PARAMETERS = (
    "watch", "limit", "continue", "resourceVersion", "resourceVersionMatch", "labelSelector", "fieldSelector", "dryRun",
    "fieldManager", "force", "fieldValidation", "propagationPolicy", "gracePeriodSeconds", "timeoutSeconds",
    "allowWatchBookmarks", "sendInitialEvents", "pretty", "includeObject", "orphanDependents", "hash", "verbose",
    "exclude", "follow", "container", "tailLines",
)  # fmt: skip
VALUES = (
    "", "0", "1", "-1", "true", "false", "All", "Exact", "NotOlderThan", "a=b", "a in (b,c)", "!a", "a==", "metadata.name=a",
    "spec.x=y", "Strict", "Warn", "Ignore", "Background", "Foreground", "Orphan", "9223372036854775807",
    "99999999999999999999", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0", "%00", "%ff%fe", "a" * 300, "é",
    "a,b,c", "(((", "None", "Object",
)  # fmt: skip
TYPES = (
    "application/json", "application/yaml", "application/merge-patch+json", "application/json-patch+json",
    "application/strategic-merge-patch+json", "application/apply-patch+yaml", "application/vnd.kubernetes.protobuf",
    "application/cbor", "text/plain", "", "application/json; charset=utf-8", ";;;",
)  # fmt: skip
ACCEPTS = (
    "*/*", "application/json", "application/yaml", "text/html", "application/vnd.kubernetes.protobuf,application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", ";q=x,,", "application/json;q=0",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
)  # fmt: skip
KEYS = (
    "apiVersion", "kind", "metadata", "name", "namespace", "generateName", "labels", "annotations", "finalizers",
    "ownerReferences", "managedFields", "resourceVersion", "uid", "generation", "creationTimestamp",
    "deletionTimestamp", "spec", "status", "data", "stringData", "replicas", "selector", "matchLabels", "template",
    "containers", "image", "ports", "port", "containerPort", "rules", "apiGroups", "resources", "verbs", "color", "free",
    "either", "share", "versions", "schema", "openAPIV3Schema", "type", "properties", "names", "plural", "op", "path",
    "value", "from", "$patch", "$setElementOrder/ports", "$retainKeys", "fieldsV1", "manager", "operation", "a", "",
    "x-kubernetes-validations", "rule", "resourceAttributes", "verb", "webhooks", "clientConfig",
)  # fmt: skip
SCALARS = (
    None, True, False, 0, 1, -1, 2**31, 2**53, 2**63, 1.5, -0.0, 1e308, "", "a", "default", "v1", "apps/v1", "example.com/v1",
    "Widget", "ConfigMap", "Deployment", "red", "2020-01-01T00:00:00Z", "not a time", "10Gi", "x" * 300, "\x00", "ü\u2028",
    "replace", "add", "remove", "/spec/replicas", "/metadata/labels/a", "object", "self.x >", "{}", "*",
)  # fmt: skip

SEEDS: tuple[Any, ...] = (
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}},
    {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"color": "red", "ports": [{"port": 1}]}},
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    },
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]},
    {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
    [{"op": "replace", "path": "/data/k", "value": "w"}, {"op": "test", "path": "/a", "value": 1}],
    {"spec": {"replicas": 3}, "metadata": {"labels": {"a": None}}},
    {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground", "preconditions": {"uid": "x"}},
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "as.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Cluster",
            "names": {"kind": "A", "plural": "as"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-validations": [{"rule": "true"}]}}}}}
            ],
        },
    },
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shot:
    method: str
    target: str
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    version: str = "1.1"

    def encoded(self, token: str) -> bytes:
        """The whole request, for one connection."""
        lines = [
            f"{self.method} {self.target} HTTP/{self.version}",
            "Host: x",
            f"Authorization: Bearer {token}",
            "Connection: close",
        ]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.body:
            lines.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join(lines).encode("utf-8", "replace") + b"\r\n\r\n" + self.body


def documents() -> st.SearchStrategy[Any]:
    keys = st.sampled_from(KEYS)
    return st.recursive(
        st.sampled_from(SCALARS) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6),
        max_leaves=20,
    )


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A good object with one place spoilt."""
    seed = json.loads(json.dumps(draw(st.sampled_from(SEEDS))))
    holder, key = draw(st.sampled_from(list(_places(seed))))
    if draw(st.booleans()) or not isinstance(holder, dict):
        holder[key] = draw(documents())
    else:
        holder[draw(st.sampled_from(KEYS))] = draw(documents())
    return seed


def _places(value: Any) -> Any:
    children = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in list(children):
        yield value, key
        if isinstance(child, (dict, list)) and child:
            yield from _places(child)


def bodies() -> st.SearchStrategy[bytes]:
    text = (mutated() | documents()).map(lambda doc: json.dumps(doc).encode())
    spoilt = st.tuples(text, st.integers(0, 200), st.binary(max_size=6)).map(
        lambda t: t[0][: t[1]] + t[2] + t[0][t[1] :]
    )
    deep = st.integers(1, 3000).map(lambda n: b'{"a":' * n + b"1" + b"}" * n)
    return (
        text
        | text
        | spoilt
        | st.binary(max_size=60)
        | deep
        | st.just(b"")
        | st.binary(max_size=60).map(lambda b: b"k8s\x00" + b)
    )


def targets() -> st.SearchStrategy[str]:
    free = st.lists(st.sampled_from(SEGMENTS), max_size=8).map(lambda parts: "/" + "/".join(parts))
    known = st.tuples(
        st.sampled_from(PLURALS),
        st.sampled_from(["", "/a", "/r", "/s", "/default", "/a/status", "/a/scale", "/a/log", "/a/token", "/nosuch"]),
    ).map("".join)
    query = st.lists(st.tuples(st.sampled_from(PARAMETERS), st.sampled_from(VALUES)), max_size=4)
    return st.tuples(known | known | known | free, query).map(_target)


def _target(parts: tuple[str, list[tuple[str, str]]]) -> str:
    path, query = parts
    # A watch without an end would only show that watches last.
    if any(name in ("watch", "follow") for name, _ in query) or "/watch" in path:
        query = [*(pair for pair in query if pair[0] != "timeoutSeconds"), ("timeoutSeconds", "1")]
    text = "&".join(f"{name}={value.replace(' ', '+')}" for name, value in query)
    return f"{path}?{text}" if text else path


def shots() -> st.SearchStrategy[Shot]:
    headers = st.tuples(st.sampled_from(TYPES), st.sampled_from(ACCEPTS), st.sampled_from(["", "gzip", "curl/8"])).map(
        lambda t: [
            ("Content-Type", t[0]),
            ("Accept", t[1]),
            ("Accept-Encoding", t[2]),
            ("User-Agent", t[2] or "fuzz/1"),
        ]
    )
    versions = st.sampled_from(["1.1", "1.1", "1.1", "1.0"])
    return st.builds(Shot, st.sampled_from(METHODS), targets(), headers, bodies(), versions)
