"""Kinds to try admission on, without schemas."""

from __future__ import annotations

from typing import Any

import orjson

from homeport.api.meta import Resource
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.request import Context, User
from homeport.apiserver.resource import Json, ServedKind, Version
from homeport.apiserver.verb.admission import Attributes
from homeport.machinery.schema import compile_checker
from homeport.store import Store

ANNA = User("anna", ("devs", "system:authenticated"), "7", {"scopes": ("a",)})


ANYTHING = compile_checker({"type": "object", "x-kubernetes-preserve-unknown-fields": True})


def kind(name: str, plural: str, group: str = "", versions: str = "v1", *, namespaced: bool = True) -> ServedKind:
    names = versions.split()
    return ServedKind(
        group=group,
        kind=name,
        plural=plural,
        singular=name.lower(),
        namespaced=namespaced,
        storage=names[-1],
        versions={v: Version(Resource(group, v, name, plural, namespaced), None, ANYTHING) for v in names},
        strategy=Plain(),
    )


CONFIG_MAP = kind("ConfigMap", "configmaps")
POD = kind("Pod", "pods")
NAMESPACE = kind("Namespace", "namespaces", namespaced=False)
NODE = kind("Node", "nodes", namespaced=False)
WIDGET = kind("Widget", "widgets", "example.org", "v1alpha1 v1")


def attributes(
    served: ServedKind = CONFIG_MAP,
    operation: str = "CREATE",
    *,
    version: str = "",
    name: str = "a",
    namespace: str = "default",
    dry_run: bool = False,
    user: User = ANNA,
    old: Json | None = None,
    subresource: str = "",
    **content: Any,
) -> Attributes:
    at = served.versions[version or next(iter(served.versions))]
    namespace = namespace if served.namespaced else ""
    meta = {"name": name, **content.pop("metadata", {})}
    if namespace:
        meta["namespace"] = namespace
    obj = {"apiVersion": at.resource.api_version, "kind": served.kind, "metadata": meta, **content}
    if operation == "DELETE":
        obj, old = None, obj  # type: ignore[assignment]
    ctx = Context(user, dry_run=dry_run)
    return Attributes(ctx, served, at, namespace, name, operation, subresource, obj, old)


async def put(store: Store, bucket: str, key: str, obj: Json) -> None:
    await store.put(bucket, key, lambda revision: orjson.dumps(obj), expect=None)


async def namespace(store: Store, name: str, **labels: str) -> None:
    await put(store, "namespaces", name, {"metadata": {"name": name, "labels": labels}, "status": {"phase": "Active"}})
