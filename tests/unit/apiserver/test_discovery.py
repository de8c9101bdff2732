"""Discovery, built from the built-in kinds and a custom one."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from homeport.api.meta import Resource
from homeport.apiserver.discovery import Discovery, group_order
from homeport.apiserver.kinds.load import builtin_kinds
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.resource import Catalog, Scale, ServedKind, Version
from homeport.machinery.schema import Schema, compile_checker

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
KUBECTL = f"{V2},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
_RAW = {"type": "object"}


def _version(name: str, *, served: bool = True) -> Version:
    return Version(
        Resource("example.com", name, "Widget", "widgets"),
        Schema(_RAW),
        compile_checker(_RAW),
        served=served,
        status=True,
        scale=Scale(".spec.replicas", ".status.replicas"),
    )


@pytest.fixture
def catalog() -> Catalog:
    catalog = Catalog()
    for served in builtin_kinds():
        catalog.add(served)
    catalog.add(
        ServedKind(
            group="example.com",
            kind="Widget",
            plural="widgets",
            singular="widget",
            namespaced=True,
            storage="v1",
            versions={n: _version(n, served=n != "v1alpha1") for n in ("v1alpha1", "v1beta1", "v1beta2", "v1", "v2")},
            strategy=Plain(),
            short_names=("wd",),
            categories=("all",),
            custom=True,
        )
    )
    return catalog


@pytest.fixture
def discovery(catalog: Catalog) -> Discovery:
    return Discovery(catalog, lambda: "10.0.0.1:6443")


def body(discovery: Discovery, path: str, accept: str = "") -> Any:
    document = discovery.find(path, accept)
    assert document is not None, path
    return orjson.loads(document.body)


def test_own_groups_come_before_custom_ones() -> None:
    assert sorted(["zzz", "apps", "aaa.io", "apiregistration.k8s.io"], key=group_order) == [
        "apiregistration.k8s.io",
        "apps",
        "aaa.io",
        "zzz",
    ]


def test_api_names_the_core_version_and_the_address(discovery: Discovery) -> None:
    found = body(discovery, "/api")
    assert found["versions"] == ["v1"]
    assert found["serverAddressByClientCIDRs"][0]["serverAddress"] == "10.0.0.1:6443"


def test_apis_lists_groups_with_their_preferred_version(discovery: Discovery) -> None:
    groups = {group["name"]: group for group in body(discovery, "/apis")["groups"]}
    assert groups["example.com"]["preferredVersion"] == {"groupVersion": "example.com/v2", "version": "v2"}
    assert [v["version"] for v in groups["example.com"]["versions"]] == ["v2", "v1", "v1beta2", "v1beta1"]
    assert "" not in groups
    assert body(discovery, "/apis/example.com/")["kind"] == "APIGroup"


def test_a_resource_list_has_what_kubectl_needs(discovery: Discovery) -> None:
    found = body(discovery, "/apis/example.com/v1")
    assert found["groupVersion"] == "example.com/v1"
    assert found["resources"] == [
        {
            "name": "widgets",
            "singularName": "widget",
            "namespaced": True,
            "kind": "Widget",
            "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
            "shortNames": ["wd"],
            "categories": ["all"],
            "storageVersionHash": "gIwvi5rymmg=",
        },
        {
            "name": "widgets/status",
            "singularName": "",
            "namespaced": True,
            "kind": "Widget",
            "verbs": ["get", "patch", "update"],
        },
        {
            "name": "widgets/scale",
            "singularName": "",
            "namespaced": True,
            "group": "autoscaling",
            "version": "v1",
            "kind": "Scale",
            "verbs": ["get", "patch", "update"],
        },
    ]


def test_built_in_resources_are_sorted_with_their_subresources(discovery: Discovery) -> None:
    names = [r["name"] for r in body(discovery, "/apis/apps/v1")["resources"]]
    assert names == sorted(names)
    assert {"deployments", "deployments/scale", "deployments/status"} <= set(names)
    core = {r["name"]: r for r in body(discovery, "/api/v1")["resources"]}
    assert core["serviceaccounts/token"]["verbs"] == ["create"]
    assert core["configmaps"]["storageVersionHash"] == "qFsyl6wFWjQ="
    events = [*body(discovery, "/apis/events.k8s.io/v1")["resources"], core["events"]]
    assert [r["storageVersionHash"] for r in events] == ["r2yiGXH7wu8=", "r2yiGXH7wu8="]
    reviews = body(discovery, "/apis/authentication.k8s.io/v1")["resources"]
    assert all("storageVersionHash" not in r for r in reviews)


@pytest.mark.parametrize("path", ["/apis/nope", "/apis/apps/v9", "/api/v9", "/apis/apps/v1/deployments", "/apix", "/"])
def test_other_paths_are_not_discovery(discovery: Discovery, path: str) -> None:
    assert discovery.find(path) is None


def test_kubectl_gets_the_aggregated_list(discovery: Discovery) -> None:
    document = discovery.find("/apis", KUBECTL)
    assert document is not None
    assert document.content_type == V2
    found = orjson.loads(document.body)
    assert found["apiVersion"] == "apidiscovery.k8s.io/v2"
    (custom,) = [item for item in found["items"] if item["metadata"]["name"] == "example.com"]
    widget = custom["versions"][1]["resources"][0]
    assert widget["responseKind"] == {"group": "example.com", "version": "v1", "kind": "Widget"}
    assert [sub["subresource"] for sub in widget["subresources"]] == ["status", "scale"]
    core = body(discovery, "/api", KUBECTL)["items"][0]
    assert core["metadata"] == {}
    assert core["versions"][0]["freshness"] == "Current"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "APIGroupList"),
        ("*/*", "APIGroupList"),
        ("application/json", "APIGroupList"),
        (f"application/json,{V2}", "APIGroupList"),
        (V2.replace("v=v2", "v=v2beta1"), "APIGroupDiscoveryList"),
        (V2.replace("v=v2", "v=v9"), "APIGroupList"),
    ],
)
def test_the_form_follows_what_the_client_accepts(discovery: Discovery, accept: str, kind: str) -> None:
    assert body(discovery, "/apis", accept)["kind"] == kind


def test_a_new_kind_changes_the_etag_and_a_repeated_request_does_not(catalog: Catalog, discovery: Discovery) -> None:
    before = discovery.find("/apis", KUBECTL)
    assert discovery.find("/apis", KUBECTL) is before
    catalog.remove("example.com", "widgets")
    after = discovery.find("/apis", KUBECTL)
    assert before is not None
    assert after is not None
    assert before.etag != after.etag
    assert discovery.find("/apis/example.com") is None
    assert "/apis/example.com/v1" not in discovery.paths()
    assert "/apis/apps/v1" in discovery.paths()
