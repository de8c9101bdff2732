#!/usr/bin/env python3
"""Write src/homeport/apiserver/kinds/builtin.json: the built-in kinds as the pinned kube-apiserver serves them.

    gen_builtin.py            start the server built by tools/kube/build, ask it, write the file
    gen_builtin.py --check    the same, but only compare; exit 1 if the checked-in file differs

Facts only: names, types, keys and columns. Descriptions are left out; Homeport writes its own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from realkube import RealKube, find_binaries  # noqa: E402

TARGET = ROOT / "src/homeport/apiserver/kinds/builtin.json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
REF = "#/components/schemas/"

Json = dict[str, Any]
Get = Callable[[str, str], Json]

KINDS: dict[str, tuple[str, ...]] = {
    "v1": (
        "Namespace", "Secret", "ConfigMap", "Service", "Endpoints", "ServiceAccount", "Event", "Node", "Pod",
        "PersistentVolumeClaim", "PersistentVolume", "LimitRange", "ResourceQuota", "ReplicationController",
        "PodTemplate",
    ),
    "discovery.k8s.io/v1": ("EndpointSlice",),
    "events.k8s.io/v1": ("Event",),
    "apps/v1": ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ControllerRevision"),
    # Of a kind in several versions the first one here is stored.
    "autoscaling/v2": ("HorizontalPodAutoscaler",),
    "autoscaling/v1": ("HorizontalPodAutoscaler",),
    "batch/v1": ("Job", "CronJob"),
    "policy/v1": ("PodDisruptionBudget",),
    "rbac.authorization.k8s.io/v1": ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
    "coordination.k8s.io/v1": ("Lease",),
    "apiextensions.k8s.io/v1": ("CustomResourceDefinition",),
    "admissionregistration.k8s.io/v1": ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"),
    "authentication.k8s.io/v1": ("TokenReview", "SelfSubjectReview"),
    "authorization.k8s.io/v1": (
        "SubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview",
    ),
    "certificates.k8s.io/v1": ("CertificateSigningRequest",),
    "storage.k8s.io/v1": (
        "StorageClass", "VolumeAttachment", "CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttributesClass",
    ),
    "networking.k8s.io/v1": ("Ingress", "IngressClass", "NetworkPolicy"),
    "node.k8s.io/v1": ("RuntimeClass",),
    "scheduling.k8s.io/v1": ("PriorityClass",),
    "apiregistration.k8s.io/v1": ("APIService",),
}  # fmt: skip
ALWAYS = ("ObjectMeta", "ListMeta", "Status", "DeleteOptions", "Patch", "WatchEvent")
KEPT = (
    "type", "format", "required", "enum", "default", "oneOf",
    "x-kubernetes-group-version-kind", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource",
)  # fmt: skip


def split(group_version: str) -> tuple[str, str]:
    group, _, version = group_version.rpartition("/")
    return group, version


def api_root(group_version: str) -> str:
    return f"/api/{group_version}" if group_version == "v1" else f"/apis/{group_version}"


def facts(schema: Json) -> Json:
    """Keep what a validator, a merge or an explain can use of a schema, and no prose."""
    kept = {key: schema[key] for key in KEPT if key in schema}
    if "$ref" in schema:
        kept["$ref"] = schema["$ref"]
    # OpenAPI lets nothing stand beside $ref, so the source wraps it; the wrapper says nothing more.
    for part in schema.get("allOf", ()):
        kept["$ref"] = part["$ref"]
    if "properties" in schema:
        kept["properties"] = {name: facts(value) for name, value in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in schema:
            value = schema[key]
            kept[key] = facts(value) if isinstance(value, dict) else value
    return kept


def references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(REF)
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def reachable(roots: set[str], schemas: Json) -> Json:
    found: Json = {}
    pending = sorted(roots)
    while pending:
        name = pending.pop()
        if name not in found:
            found[name] = facts(schemas[name])
            pending.extend(references(found[name]))
    return found


def load_schemas(get: Get) -> Json:
    schemas: Json = {}
    for group_version in KINDS:
        document = get("/openapi/v3" + api_root(group_version), "application/json")
        for name, schema in document["components"]["schemas"].items():
            # Documents differ in the group-version-kinds of shared types (DeleteOptions): gather them all.
            known = schemas.setdefault(name, schema)
            merge_kinds(known, schema)
    return schemas


def merge_kinds(known: Json, schema: Json) -> None:
    key = "x-kubernetes-group-version-kind"
    for kind in schema.get(key, ()):
        if kind not in known[key]:
            known[key].append(kind)


def definitions_by_kind(schemas: Json) -> dict[tuple[str, str, str], str]:
    found: dict[tuple[str, str, str], str] = {}
    for name, schema in sorted(schemas.items()):
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            found.setdefault((kind["group"], kind["version"], kind["kind"]), name)
    return found


def load_discovery(get: Get) -> dict[str, list[Json]]:
    """Give the resources of each group version."""
    found: dict[str, list[Json]] = {}
    for root in ("/api", "/apis"):
        for group in get(root, AGGREGATED)["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                key = f"{name}/{version['version']}" if name else version["version"]
                found[key] = version["resources"]
    return found


def served_kind(response: Json, group_version: str) -> tuple[str, str, str]:
    """Fill in what discovery leaves empty: a response kind without a version is of the enclosing group version."""
    group, version = split(group_version)
    if response.get("version"):
        group, version = response.get("group", ""), response["version"]
    return group, version, response["kind"]


def describe(resource: Json, group_version: str, definitions: dict[tuple[str, str, str], str]) -> Json:
    group, version, kind = served_kind(resource["responseKind"], group_version)
    subresources = {}
    for sub in resource.get("subresources", ()):
        sub_kind = served_kind(sub["responseKind"], group_version)
        subresources[sub["subresource"]] = {
            **dict(zip(("group", "version", "kind"), sub_kind, strict=True)),
            "definition": definitions.get(sub_kind),
            "verbs": sorted(sub["verbs"]),
        }
    return {
        "group": group,
        "version": version,
        "kind": kind,
        "plural": resource["resource"],
        "singular": resource["singularResource"],
        "shortNames": resource.get("shortNames", []),
        "categories": resource.get("categories", []),
        "namespaced": resource["scope"] == "Namespaced",
        "definition": definitions[(group, version, kind)],
        "subresources": subresources,
        "verbs": sorted(resource["verbs"]),
    }


def load_resources(get: Get, definitions: dict[tuple[str, str, str], str]) -> list[Json]:
    discovery = load_discovery(get)
    found = []
    for group_version, kinds in KINDS.items():
        # A kind can have a second resource, such as one that only takes creates; the plain one has the kind's name.
        by_kind = {resource["responseKind"]["kind"]: resource for resource in reversed(discovery[group_version])}
        for kind in kinds:
            if kind not in by_kind:
                raise SystemExit(f"the server does not serve {kind} of {group_version}")
            found.append(describe(by_kind[kind], group_version, definitions))
    return found


def load_absent(get: Get) -> list[str]:
    """What the server has and Homeport does not serve; the reference page lists it."""
    return sorted(
        f"{group_version}/{resource['responseKind']['kind']}"
        for group_version, resources in load_discovery(get).items()
        for resource in resources
        if resource["responseKind"]["kind"] not in KINDS.get(group_version, ())
    )


def load_columns(get: Get, resources: list[Json]) -> Json:
    found: Json = {}
    for resource in resources:
        if "list" not in resource["verbs"]:
            continue
        group, version = resource["group"], resource["version"]
        root = api_root(f"{group}/{version}" if group else version)
        columns = get(f"{root}/{resource['plural']}", TABLE)["columnDefinitions"]
        key = f"{group}/{resource['kind']}" if group else resource["kind"]
        found[key] = [{name: column[name] for name in ("name", "type", "format", "priority")} for column in columns]
    return found


def collect(get: Get) -> bytes:
    schemas = load_schemas(get)
    definitions = definitions_by_kind(schemas)
    resources = load_resources(get, definitions)
    roots = {META + name for name in ALWAYS} | {resource["definition"] for resource in resources}
    roots |= {
        sub["definition"]
        for resource in resources
        for sub in resource["subresources"].values()
        if sub["definition"] is not None
    }
    document = {
        "version": get("/version", "application/json")["gitVersion"],
        "definitions": reachable(roots, schemas),
        "resources": resources,
        "printer": load_columns(get, resources),
        "absent": load_absent(get),
    }
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS) + b"\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the checked-in file, write nothing")
    options = parser.parse_args()
    binaries = find_binaries()
    if isinstance(binaries, str):
        print(binaries, file=sys.stderr)
        return 3
    with RealKube(binaries) as kube:

        def get(path: str, accept: str) -> Json:
            status, body = kube.request(path, Accept=accept)
            if status != 200:
                raise SystemExit(f"GET {path} answered {status}: {body[:300].decode(errors='replace')}")
            document: Json = json.loads(body)
            return document

        written = collect(get)
    if options.check:
        same = TARGET.exists() and TARGET.read_bytes() == written
        print(f"{TARGET.relative_to(ROOT)} is {'up to date' if same else 'stale: run tools/gen_builtin.py'}")
        return 0 if same else 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_bytes(written)
    print(f"{TARGET.relative_to(ROOT)}: {len(written) / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
