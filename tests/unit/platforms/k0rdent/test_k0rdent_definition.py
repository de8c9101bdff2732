"""k0rdent's kinds accept every field of upstream's, and store what was written.

`k0rdent_fields.json` is the record of upstream's fields: paths, types and choices. No text of it is in the project.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from homeport.api.k0rdent.v1beta1 import GROUP
from homeport.api.meta import Unstructured
from homeport.capi.definition.kind import definitions as capi_definitions
from homeport.client.errors import Invalid
from homeport.client.protocol import Key, Write
from homeport.machinery import yaml
from homeport.machinery.crd.check import check
from homeport.platforms.butler.definition import definitions as butler_definitions
from homeport.platforms.k0rdent.component import COMPONENT
from homeport.platforms.k0rdent.definition import KINDS, definitions
from homeport.runtime.testing import establish, plane

UPSTREAM: dict[str, Any] = json.loads((Path(__file__).parent / "k0rdent_fields.json").read_text())
OURS = {crd["metadata"]["name"]: crd for crd in definitions()}
REFERENCE = os.environ.get("HOMEPORT_REFERENCE", "")
# The key of a list needs a default to be one.
DEFAULTED = {"namespace"}


def schema_of(crd: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def find(schema: dict[str, Any], path: str) -> dict[str, Any] | None:
    """The schema of a field; {} where anything is accepted."""
    for step in path.split("."):
        name, *lists = step.split("[]")
        found = (schema.get("properties") or {}).get(name)
        if found is None:
            return {} if schema.get("x-kubernetes-preserve-unknown-fields") else None
        for _ in lists:
            found = found.get("items", {})
        schema = found
    return schema


@pytest.mark.parametrize("name", UPSTREAM)
def test_every_field_of_upstream_is_accepted(name: str) -> None:
    wrong = []
    for path, fact in UPSTREAM[name].items():
        found = find(schema_of(OURS[name]), path)
        if found is None:
            wrong.append(f"{path} is missing")
        elif found and "type" in fact and found.get("type") != fact["type"]:
            wrong.append(f"{path} has type {found.get('type')}, upstream {fact['type']}")
        elif missing := set(fact.get("enum", ())) - set(found.get("enum") or fact.get("enum", ())):
            wrong.append(f"{path} refuses {sorted(missing)}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.skipif(not REFERENCE, reason="HOMEPORT_REFERENCE names no folder of upstream CRDs")
@pytest.mark.parametrize("name", OURS)
def test_names_scope_and_columns_are_those_of_upstream(name: str) -> None:
    ours = OURS[name]["spec"]
    [path] = Path(REFERENCE).rglob(f"k0rdent/{GROUP}_{ours['names']['plural']}.yaml")
    theirs = yaml.load(path.read_text())["spec"]
    assert ours["scope"] == theirs["scope"]
    assert ours["names"].get("shortNames") == theirs["names"].get("shortNames")
    if columns := theirs["versions"][0].get("additionalPrinterColumns"):
        assert [_column(each) for each in ours["versions"][0]["additionalPrinterColumns"]] == list(
            map(_column, columns)
        )


def _column(each: dict[str, Any]) -> tuple[Any, ...]:
    path = each["jsonPath"].replace("'", '"')
    return each["name"], path, each["type"], bool(each.get("priority", 0))


@pytest.mark.parametrize("crd", OURS.values(), ids=OURS)
def test_a_definition_is_one_that_kubernetes_accepts(crd: dict[str, Any]) -> None:
    assert check({**crd, "status": {"storedVersions": ["v1beta1"]}}) == []
    assert crd["spec"]["names"]["categories"] == ["k0rdent"]
    assert crd["spec"]["versions"][0]["subresources"]["status"] == {}


@pytest.mark.parametrize("crd", OURS.values(), ids=OURS)
def test_every_field_is_described(crd: dict[str, Any]) -> None:
    properties = schema_of(crd)["properties"]
    assert [each for part in ("spec", "status") for each in undescribed(properties[part], part)] == []


def undescribed(schema: dict[str, Any], path: str) -> Iterator[str]:
    if not schema.get("description") and not path.endswith("]"):
        yield path
    for name, part in (schema.get("properties") or {}).items():
        if name != "conditions":
            yield from undescribed(part, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from undescribed(schema["items"], f"{path}[]")


@pytest.mark.parametrize("crd", OURS.values(), ids=OURS)
def test_only_keys_of_lists_have_defaults_so_that_an_object_stays_as_it_was_written(crd: dict[str, Any]) -> None:
    assert set(defaulted(schema_of(crd), "")) <= DEFAULTED


def defaulted(schema: Any, name: str) -> Iterator[str]:
    if isinstance(schema, dict):
        if "default" in schema and "type" in schema:
            yield name
        for key, each in schema.items():
            yield from defaulted(each, key)


def test_no_short_name_stands_for_two_kinds() -> None:
    taken: dict[str, str] = {}
    for crd in [*capi_definitions(), *butler_definitions(), *OURS.values()]:
        for short in crd["spec"]["names"].get("shortNames", ()):
            assert short not in taken, f"{short}: {taken[short]} and {crd['metadata']['name']}"
            taken[short] = crd["metadata"]["name"]
    assert taken["cld"] == f"clusterdeployments.{GROUP}"
    assert len(KINDS) == len(UPSTREAM)


def test_the_namespace_and_deployment_of_the_guide_exist() -> None:
    places = {(place.namespace, place.deployment) for place in COMPONENT.places}
    assert ("kcm-system", "kcm-controller-manager") in places


def manifest(kind: str, spec: dict[str, Any], name: str = "a") -> Unstructured:
    at = {each.__resource__.kind: each.__resource__ for each in KINDS}[kind]
    meta = {"name": name, "namespace": "default"} if at.namespaced else {"name": name}
    return Unstructured({"apiVersion": at.api_version, "kind": kind, "metadata": meta, "spec": spec})


CHART = {"chartSpec": {"chart": "web", "sourceRef": {"kind": "HelmRepository", "name": "kcm-templates"}}}
REF = {"chartRef": {"kind": "HelmChart", "name": "web"}}
IDENTITY = {"apiVersion": "v1", "kind": "Secret", "name": "s", "namespace": "default"}
KUBECONFIG = {"kubeConfig": {"name": "k"}}


@pytest.mark.parametrize(
    ("kind", "spec", "said"),
    [
        ("ClusterTemplate", {"helm": {}}, "exactly one of chartSpec, chartRef, chartSource"),
        ("ClusterTemplate", {"helm": {**CHART, **REF}}, "exactly one of chartSpec, chartRef, chartSource"),
        ("ServiceTemplate", {"version": "1"}, "exactly one of helm, kustomize, resources"),
        ("Region", {}, "exactly one of kubeConfig, clusterDeployment"),
        (
            "AccessManagement",
            {"accessRules": [{"targetNamespaces": {"list": ["a"], "stringSelector": "a=b"}}]},
            "at most one of list, selector, stringSelector",
        ),
        ("ClusterDeployment", {"config": {}}, "template"),
        ("Credential", {"description": "x"}, "identityRef"),
    ],
)
async def test_what_contradicts_itself_is_refused(kind: str, spec: dict[str, Any], said: str) -> None:
    written = manifest(kind, spec)
    at = next(each.__resource__ for each in KINDS if each.__resource__.kind == kind)
    async with plane() as p:
        await establish(p.client, OURS[at.qualified])
        with pytest.raises(Invalid) as refused:
            await p.client.create(written, Write(), kind=at)
        assert said in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "spec", "change"),
    [
        ("ClusterTemplate", {"helm": CHART}, {"helm": REF}),
        ("ProviderTemplate", {"helm": CHART}, {"helm": REF}),
        ("ServiceTemplate", {"helm": CHART}, {"helm": REF}),
        ("ClusterTemplateChain", {"supportedTemplates": [{"name": "a"}]}, {"supportedTemplates": [{"name": "b"}]}),
        ("Credential", {"identityRef": IDENTITY, "region": "a"}, {"identityRef": IDENTITY, "region": "b"}),
        ("Region", KUBECONFIG, {"kubeConfig": {"name": "other"}}),
    ],
)
async def test_what_is_immutable_does_not_change(kind: str, spec: dict[str, Any], change: dict[str, Any]) -> None:
    at = next(each.__resource__ for each in KINDS if each.__resource__.kind == kind)
    async with plane() as p:
        await establish(p.client, OURS[at.qualified])
        made = await p.client.create(manifest(kind, spec), Write(), kind=at)
        assert (await p.client.get(at, Key(made.namespace, "a")))["spec"] == spec
        with pytest.raises(Invalid) as refused:
            await p.client.apply(manifest(kind, change), Write(field_manager="kubectl"), kind=at, force=True)
        assert "immutable" in str(refused.value)


async def test_interfaces_of_older_charts_are_stored_as_they_were_written() -> None:
    at = next(each.__resource__ for each in KINDS if each.__resource__.kind == "ProviderInterface")
    spec = {
        "clusterGVKs": [{"group": "infrastructure.cluster.x-k8s.io", "version": "v1beta1", "kind": "NutanixCluster"}],
        "clusterIdentityKinds": ["Secret"],
        "description": "Nutanix",
    }
    async with plane() as p:
        await establish(p.client, OURS[at.qualified])
        await p.client.create(manifest("ProviderInterface", spec), Write(field_validation="Strict"), kind=at)
        assert (await p.client.get(at, Key("", "a")))["spec"] == spec
