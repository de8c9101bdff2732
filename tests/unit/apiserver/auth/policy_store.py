"""A store in memory with roles and bindings put into it as the server would."""

from __future__ import annotations

from typing import Any

import orjson

from homeport.store import Store

GROUP = "rbac.authorization.k8s.io"


async def put(store: Store, plural: str, obj: dict[str, Any]) -> None:
    meta = obj["metadata"]
    name = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
    await store.put(plural, name, lambda revision: orjson.dumps(obj), expect=None)


async def delete(store: Store, plural: str, name: str) -> None:
    await store.delete(plural, name, lambda revision: b"{}", expect=None)


def rule(
    verbs: str = "", groups: str | None = "", resources: str = "", names: str = "", urls: str = ""
) -> dict[str, Any]:
    """Lists written with spaces; '-' stands for the core group."""
    raw: dict[str, Any] = {"verbs": verbs.split()}
    if resources:
        raw["apiGroups"] = ["" if group == "-" else group for group in (groups or "-").split()]
        raw["resources"] = resources.split()
    if names:
        raw["resourceNames"] = names.split()
    if urls:
        raw["nonResourceURLs"] = urls.split()
    return raw


async def role(store: Store, name: str, *rules: dict[str, Any], namespace: str = "", **more: Any) -> None:
    meta: dict[str, Any] = {"name": name, **more.pop("metadata", {})}
    if namespace:
        meta["namespace"] = namespace
    plural = f"roles.{GROUP}" if namespace else f"clusterroles.{GROUP}"
    await put(store, plural, {"metadata": meta, "rules": list(rules), **more})


async def bind(store: Store, name: str, ref: str, *subjects: str, namespace: str = "") -> None:
    """`ref` is Kind/name; subjects are `User/x`, `Group/x` or `ServiceAccount/namespace/x`."""
    kind, role_name = ref.split("/", 1)
    meta: dict[str, Any] = {"name": name}
    if namespace:
        meta["namespace"] = namespace
    found = []
    for text in subjects:
        parts = text.split("/")
        subject = {"kind": parts[0], "name": parts[-1]}
        if len(parts) == 3:
            subject["namespace"] = parts[1]
        found.append(subject)
    plural = f"rolebindings.{GROUP}" if namespace else f"clusterrolebindings.{GROUP}"
    await put(
        store,
        plural,
        {"metadata": meta, "subjects": found, "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role_name}},
    )
