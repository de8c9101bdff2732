"""Butler's kinds accept every field of upstream's and of the guides, and store what was written and nothing else.

`butler_fields.json` is the record of upstream's fields: paths, types and choices. No text of it is in the project.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from homeport.api.butler.v1alpha1 import GROUP, ProviderConfig, TenantCluster
from homeport.api.meta import Unstructured
from homeport.capi.definition.kind import definitions as capi_definitions
from homeport.client.protocol import Key, Write
from homeport.machinery.crd.check import check
from homeport.machinery.jsonpath import compile_path
from homeport.platforms.butler.component import COMPONENT
from homeport.platforms.butler.definition import KINDS, definitions
from homeport.runtime.testing import establish, plane

UPSTREAM: dict[str, Any] = json.loads((Path(__file__).parent / "butler_fields.json").read_text())
OURS = {crd["metadata"]["name"]: crd for crd in definitions()}
# Credentials do not belong into a status, which many may read: Secrets hold them, and the status refers to those.
LEFT_OUT = {("clusterbootstraps", "status.kubeconfig"), ("clusterbootstraps", "status.talosconfig")}


def schema_of(crd: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def find(schema: dict[str, Any], path: str) -> dict[str, Any] | None:
    """The schema of a field; {} where anything is accepted."""
    for step in path.split("."):
        if schema.get("x-kubernetes-preserve-unknown-fields") and "properties" not in schema:
            return {}
        name, *lists = step.split("[]")
        found = (schema.get("properties") or {}).get(name)
        if found is None:
            return None
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
            if (name.partition(".")[0], path) not in LEFT_OUT:
                wrong.append(f"{path} is missing")
        elif found and found.get("type") != fact.get("type"):
            wrong.append(f"{path} has type {found.get('type')}, upstream {fact.get('type')}")
        elif missing := set(fact.get("enum", ())) - set(found.get("enum") or fact.get("enum", ())):
            wrong.append(f"{path} refuses {sorted(missing)}")
    assert not wrong, "\n".join(wrong)


def defaults_in(schema: Any) -> Iterator[Any]:
    if isinstance(schema, dict):
        if "default" in schema and "type" in schema:
            yield schema["default"]
        for each in schema.values():
            yield from defaults_in(each)


@pytest.mark.parametrize("crd", OURS.values(), ids=OURS)
def test_no_field_has_a_default_so_that_an_object_stays_as_it_was_written(crd: dict[str, Any]) -> None:
    assert list(defaults_in(schema_of(crd))) == []


@pytest.mark.parametrize("crd", OURS.values(), ids=OURS)
def test_a_definition_is_one_that_kubernetes_accepts(crd: dict[str, Any]) -> None:
    assert check({**crd, "status": {"storedVersions": ["v1alpha1"]}}) == []
    assert crd["spec"]["names"]["categories"] == ["butler"]
    assert crd["spec"]["versions"][0]["subresources"]["status"] == {}


def test_no_short_name_stands_for_two_kinds() -> None:
    taken: dict[str, str] = {}
    for crd in [*capi_definitions(), *OURS.values()]:
        for short in crd["spec"]["names"].get("shortNames", ()):
            assert short not in taken, f"{short}: {taken[short]} and {crd['metadata']['name']}"
            taken[short] = crd["metadata"]["name"]
    assert taken["ma"] == "machines.cluster.x-k8s.io"
    assert taken["maddon"] == f"managementaddons.{GROUP}"
    assert len([name for name in taken.values() if name.endswith(GROUP)]) == len(KINDS) + 1  # AddonDefinition has two


@pytest.mark.parametrize("spec", [{"type": "nutanix"}, {"provider": "nutanix"}])
def test_the_provider_column_shows_either_spelling(spec: dict[str, str]) -> None:
    columns = OURS[f"providerconfigs.{GROUP}"]["spec"]["versions"][0]["additionalPrinterColumns"]
    path = next(each["jsonPath"] for each in columns if each["name"] == "Provider")
    assert list(compile_path(path)({"spec": spec})) == ["nutanix"]


def test_the_namespaces_and_deployments_of_the_guides_exist() -> None:
    assert COMPONENT.namespaces == ("butler-tenants",)
    places = {(place.namespace, place.deployment) for place in COMPONENT.places}
    assert ("butler-system", "butler-controller") in places


NUTANIX = {
    "type": "nutanix",
    "nutanix": {
        "credentialsRef": {"name": "nutanix-credentials"},
        "prismCentral": {"address": "prism-central.example.com", "port": 9440, "insecure": False},
        "cluster": {"name": "cluster-01"},
        "subnet": {"name": "workload-subnet"},
        "image": {"name": "talos-1.9"},
    },
}
HARVESTER = {
    "type": "harvester",
    "harvester": {
        "credentialsRef": {"name": "harvester-kubeconfig", "key": "kubeconfig"},
        "namespace": "default",
        "networkName": "default/workloads",
        "imageName": "default/talos-1.9",
        "storageClassName": "harvester-longhorn",
    },
}
WORKERS = {"replicas": 3, "machineTemplate": {"cpu": 8, "memory": "16Gi", "disk": "100Gi"}}
WRITTEN = [
    (ProviderConfig, NUTANIX),
    (ProviderConfig, HARVESTER),
    (TenantCluster, {"providerConfigRef": {"name": "harvester-prod"}}),
    (TenantCluster, {"workers": WORKERS}),
    (TenantCluster, {"platform": {"metalLBPool": "10.127.14.30-10.127.14.50"}}),
    (
        TenantCluster,
        {"addons": {"loadBalancer": {"provider": "metallb", "addressPool": "10.40.1.0-10.40.1.50"}}},
    ),
]


@pytest.mark.parametrize(("kind", "spec"), WRITTEN)
async def test_what_a_guide_writes_is_stored_exactly_as_it_is_written(kind: Any, spec: dict[str, Any]) -> None:
    at = kind.__resource__
    async with plane() as p:
        await establish(p.client, OURS[at.qualified])
        written = {
            "apiVersion": at.api_version,
            "kind": at.kind,
            "metadata": {"name": "a", "namespace": "default"},
            "spec": spec,
        }
        await p.client.create(Unstructured(written), Write(field_validation="Strict"), kind=at)
        stored = await p.client.get(at, Key("default", "a"))
        assert stored["spec"] == spec
