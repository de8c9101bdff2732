"""Which groups, versions and resources the server has: /api, /apis and what is below, in the old and aggregated forms.

Everything is rendered once per change of the catalog. No HTTP here: `Discovery.find` gives a Document for a path.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import orjson

from homeport.apiserver.resource import Catalog, Json, ServedKind, Version
from homeport.machinery.gvk import version_order

JSON: Final = "application/json"
_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
_STATUS_VERBS: Final = ("get", "patch", "update")
_SCALE: Final = ("autoscaling", "v1", "Scale")
# What clients skip: the object is not served here, only its subresources are.
_NO_KIND: Final = {"group": "", "version": "", "kind": ""}
_CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
# The order in which kube-apiserver lists its own groups; others follow by name.
_GROUPS: Final = (
    "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling",
    "batch", "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io",
    "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io", "coordination.k8s.io", "node.k8s.io",
    "discovery.k8s.io", "resource.k8s.io", "flowcontrol.apiserver.k8s.io", "storagemigration.k8s.io",
)  # fmt: skip
_GROUP_ORDER: Final = {name: place for place, name in enumerate(_GROUPS)}


@dataclass(frozen=True, slots=True)
class Document:
    """An answer that may be kept: the body and what its headers say. `location` sends the client elsewhere."""

    body: bytes
    content_type: str = JSON
    etag: str = ""  # without quotes
    cache_control: str = "no-cache, private"
    vary: str = ""
    location: str = ""


def group_order(group: str) -> tuple[int, str]:
    return (_GROUP_ORDER.get(group, len(_GROUPS)), group)


def storage_hash(served: ServedKind) -> str:
    """Tells clients when the stored version of a kind changed."""
    # A kind that has none of its versions in the store is kept as the core group's kind of its name (Event).
    stored = f"{served.group}/{served.storage}" if served.storage in served.versions else "/v1"
    text = f"{stored}/{served.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def subresources(served: ServedKind, version: Version) -> list[tuple[str, tuple[str, str, str], tuple[str, ...]]]:
    """(name, (group, version, kind) of its body, verbs), in the order of kube-apiserver."""
    own = (served.group, version.resource.version, served.kind)
    found: list[tuple[str, tuple[str, str, str], tuple[str, ...]]] = []
    if version.status:
        found.append(("status", own, _STATUS_VERBS))
    if version.scale is not None:
        found.append(("scale", _SCALE, _STATUS_VERBS))
    found += [
        (name, target, served.subresource_verbs.get(name, _STATUS_VERBS))
        for name, target in served.subresources.items()
    ]
    return found if served.custom else sorted(found)


def verbs(served: ServedKind) -> list[str]:
    return [verb for verb in _CUSTOM_VERBS if verb in served.verbs] if served.custom else list(served.verbs)


class Groups:
    """The catalog by group and version, in the order of discovery."""

    def __init__(self, catalog: Catalog) -> None:
        self.versions: dict[str, dict[str, list[tuple[ServedKind, Version]]]] = {}
        for served in catalog:
            for name in served.versions:
                version = served.version(name)
                if version is not None:
                    self.versions.setdefault(served.group, {}).setdefault(name, []).append((served, version))
        for group, found in self.versions.items():
            ordered = sorted(found, key=version_order)
            self.versions[group] = {name: sorted(found[name], key=lambda pair: pair[0].plural) for name in ordered}

    def named(self) -> list[str]:
        """Every group but the core one."""
        return sorted((group for group in self.versions if group), key=group_order)


class Discovery:
    """`address`: host and port as clients reach the server, for the old list of versions."""

    def __init__(self, catalog: Catalog, address: Callable[[], str] = lambda: "") -> None:
        self._catalog = catalog
        self._address = address
        self._built_at = -1
        self._groups = Groups(catalog)
        self._documents: dict[str, Document] = {}

    def find(self, path: str, accept: str = "") -> Document | None:
        """The document at a path; None where discovery has none."""
        if not path.startswith("/api"):
            return None
        self._refresh()
        path = path.rstrip("/")
        form = aggregated_form(accept) if path in ("/api", "/apis") else ""
        key = f"{path} {form}"
        found = self._documents.get(key)
        if found is None:
            found = self._build(path, form)
            if found is not None:
                self._documents[key] = found
        return found

    def paths(self) -> list[str]:
        """What the index of the server lists."""
        self._refresh()
        found = ["/api", "/apis"]
        for group, versions in self._groups.versions.items():
            root = f"/apis/{group}" if group else "/api"
            found += [root, *(f"{root}/{version}" for version in versions)]
        return sorted(set(found))

    def _refresh(self) -> None:
        if self._built_at != self._catalog.changed:
            self._built_at = self._catalog.changed
            self._groups = Groups(self._catalog)
            self._documents.clear()

    def _build(self, path: str, form: str) -> Document | None:
        if form:
            return _aggregated(self._groups, form, core=path == "/api")
        parts = path.strip("/").split("/")
        if parts == ["api"]:
            return _plain(self._core_versions())
        if parts == ["apis"]:
            return _plain(_group_list(self._groups))
        if parts[0] == "api":
            group, rest = "", parts[1:]
        elif parts[0] == "apis" and parts[1]:
            group, rest = parts[1], parts[2:]
        else:
            return None
        if group not in self._groups.versions:
            return None
        if not rest:
            return _plain({"kind": "APIGroup", "apiVersion": "v1", **_group(group, self._groups)})
        resources = self._groups.versions[group].get(rest[0])
        return _plain(_resource_list(group, rest[0], resources)) if resources and len(rest) == 1 else None

    def _core_versions(self) -> Json:
        return {
            "kind": "APIVersions",
            "versions": list(self._groups.versions.get("", {"v1": []})),
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": self._address()}],
        }


def aggregated_form(accept: str) -> str:
    """`v2` or `v2beta1` when the client prefers the aggregated list, else ''."""
    for wanted in accept.split(","):
        kind, *parameters = (part.strip() for part in wanted.split(";"))
        if kind not in (JSON, "application/*", "*/*"):
            continue
        if "as=APIGroupDiscoveryList" not in parameters:
            return ""
        for version in ("v2", "v2beta1"):
            if kind == JSON and f"v={version}" in parameters and "g=apidiscovery.k8s.io" in parameters:
                return version
    return ""


def _plain(body: Json) -> Document:
    return Document(orjson.dumps(body))


def _group_list(groups: Groups) -> Json:
    found = [_group(name, groups) for name in groups.named()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}


def _group(name: str, groups: Groups) -> Json:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in groups.versions[name]]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource_list(group: str, version: str, resources: list[tuple[ServedKind, Version]]) -> Json:
    # The core group's list is older than apiVersion in it, and still goes without.
    head: Json = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if group else {})
    head["groupVersion"] = f"{group}/{version}" if group else version
    return {
        **head,
        "resources": [entry for served, served_version in resources for entry in _entries(served, served_version)],
    }


def _aliases(served: ServedKind) -> Json:
    names = {"shortNames": list(served.short_names), "categories": list(served.categories)}
    return {key: value for key, value in names.items() if value}


def _entries(served: ServedKind, served_version: Version) -> Iterator[Json]:
    entry: Json = {
        "name": served.plural,
        "singularName": served.singular,
        "namespaced": served.namespaced,
        "kind": served.kind,
        "verbs": verbs(served),
    }
    entry |= _aliases(served)
    if "list" in served.verbs:
        entry["storageVersionHash"] = storage_hash(served)
    if served.verbs:  # a group may serve nothing but subresources of another group's objects
        yield entry
    for name, (group, version, kind), allowed in subresources(served, served_version):
        below: Json = {"name": f"{served.plural}/{name}", "singularName": "", "namespaced": served.namespaced}
        if (group, version) != (served.group, served_version.resource.version):
            below |= {"group": group, "version": version}
        yield {**below, "kind": kind, "verbs": list(allowed)}


def _aggregated(groups: Groups, form: str, *, core: bool) -> Document:
    items = [_discovered(name, groups) for name in ([""] if core else groups.named()) if name in groups.versions]
    body = orjson.dumps(
        {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"apidiscovery.k8s.io/{form}",
            "metadata": {},
            "items": items,
        }
    )
    etag = hashlib.sha512(body).hexdigest().upper()
    return Document(body, _AGGREGATED.format(form), etag, "public", "Accept")


def _discovered(group: str, groups: Groups) -> Json:
    versions = [
        {
            "version": version,
            "resources": [_resource(served, served_version) for served, served_version in resources],
            "freshness": "Current",
        }
        for version, resources in groups.versions[group].items()
    ]
    return {"metadata": {"name": group} if group else {}, "versions": versions}


def _resource(served: ServedKind, version: Version) -> Json:
    resource: Json = {
        "resource": served.plural,
        "responseKind": _kind(served, (served.group, version.resource.version, served.kind), version)
        if served.verbs
        else _NO_KIND,
        "scope": "Namespaced" if served.namespaced else "Cluster",
        "singularResource": served.singular,
        "verbs": verbs(served),
    }
    resource |= _aliases(served)
    below = [
        {"subresource": name, "responseKind": _kind(served, target, version), "verbs": list(allowed)}
        for name, target, allowed in subresources(served, version)
    ]
    return {**resource, "subresources": below} if below else resource


def _kind(served: ServedKind, target: tuple[str, str, str], served_version: Version) -> Json:
    """Built-in kinds leave the group and version out where they are those of the list."""
    group, version, kind = target
    if not served.custom and (group, version) == (served.group, served_version.resource.version):
        group = version = ""
    return {"group": group, "version": version, "kind": kind}
