"""What the author of an object needs a right for, besides the one to write the object. Pure.

owners       An object whose owner is gone is deleted, so that adding an owner is deleting: `delete` of the object.
finalizers   Removing a finalizer of Butler leaves VMs and addresses without an owner: `update` of RESOURCE/finalizers.
clusters     A chart, its values, an SSH key and an installer image give all rights in a tenant cluster:
             `administer` of that TenantCluster. So does an environment, to its administrators.
secrets      The controllers send a Secret to the address that stands beside it: `get` of that Secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.butler.v1alpha1 import GROUP
from homeport.api.butler.v1alpha1.part import PROVIDER_TYPES
from homeport.platforms.butler.name import ENVIRONMENT_LABEL, PROVIDER_FINALIZER_PREFIX

Json = dict[str, Any]

ADMINISTER = "administer"
PREFIXES = (f"{GROUP}/", PROVIDER_FINALIZER_PREFIX)
ROLES = ("cni", "loadBalancer", "certManager", "storage", "ingress")  # add-ons of spec.addons that have values
OS_FIELDS = ("sshAuthorizedKey", "schematicID", "talos")


@dataclass(frozen=True, slots=True)
class Right:
    """A right that the author must have, and why."""

    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Change:
    """`old` None: the object is created."""

    plural: str
    new: Json
    old: Json | None

    @property
    def namespace(self) -> str:
        return str(_meta(self.new).get("namespace") or "")

    @property
    def name(self) -> str:
        return str(_meta(self.new).get("name") or "")


def rights(change: Change) -> Iterator[Right]:
    yield from _owners(change)
    yield from _finalizers(change)
    if found := _BY_PLURAL.get(change.plural):
        yield from found(change)


# -- owners ------------------------------------------------------------------------------------------------------------


def _owners(change: Change) -> Iterator[Right]:
    if change.old is None:
        return
    before = {each.get("uid") for each in _meta(change.old).get("ownerReferences") or ()}
    if any(each.get("uid") not in before for each in _meta(change.new).get("ownerReferences") or ()):
        why = (
            "metadata.ownerReferences: an object is deleted with its owner: only somebody who may delete it may add one"
        )
        yield Right("delete", GROUP, change.plural, "", change.namespace, change.name, why)


# -- finalizers --------------------------------------------------------------------------------------------------------


def _finalizers(change: Change) -> Iterator[Right]:
    kept = _meta(change.new).get("finalizers") or []
    removed = [
        each for each in (_meta(change.old).get("finalizers") or []) if each.startswith(PREFIXES) and each not in kept
    ]
    if removed:
        why = (
            f"metadata.finalizers: {removed[0]} is removed when all that belongs to the object is gone: delete the "
            "object and wait; its status says for what"
        )
        yield Right("update", GROUP, change.plural, "finalizers", change.namespace, change.name, why)


# -- rights in tenant clusters -----------------------------------------------------------------------------------------


def _tenant_cluster(change: Change) -> Iterator[Right]:
    before = {} if change.old is None else dict(_powers(change.old))
    changed = [field for field, value in _powers(change.new) if before.get(field) != value]
    if change.old is not None and _environment(change.new) != _environment(change.old):
        changed.append(f"metadata.labels[{ENVIRONMENT_LABEL}]")
    if changed:
        yield _administer(change, change.name, changed[0])


def _powers(obj: Json) -> Iterator[tuple[str, Any]]:
    """Fields that give all rights in the cluster, with their values."""
    spec = _spec(obj)
    pools = [("spec.workers", spec.get("workers"))]
    pools += [(f"spec.workerPools[{each.get('name')}]", each) for each in spec.get("workerPools") or ()]
    for path, pool in pools:
        system = ((pool or {}).get("machineTemplate") or {}).get("os") or {}
        for field in OS_FIELDS:
            if value := system.get(field):
                yield f"{path}.machineTemplate.os.{field}", value
    addons = spec.get("addons") or {}
    for role in ROLES:
        if values := (addons.get(role) or {}).get("values"):
            yield f"spec.addons.{role}.values", values
    if repository := (addons.get("gitops") or {}).get("repository"):
        yield "spec.addons.gitops.repository", repository


def _environment(obj: Json) -> str:
    return str((_meta(obj).get("labels") or {}).get(ENVIRONMENT_LABEL) or "")


def _tenant_addon(change: Change) -> Iterator[Right]:
    """The version and the pause of a chart that an administrator chose are an operator's."""
    now = _chart(change.new)
    if now is not None and (change.old is None or now != _chart(change.old)):
        field = "spec.helm" if _spec(change.new).get("helm") else "spec.values"
        yield _administer(change, str(now[0]), field)


def _chart(obj: Json) -> tuple[Any, ...] | None:
    spec = _spec(obj)
    if not spec.get("helm") and not spec.get("values"):
        return None
    return (spec.get("clusterRef") or {}).get("name") or "", spec.get("addon"), spec.get("helm"), spec.get("values")


def _administer(change: Change, cluster: str, field: str) -> Right:
    why = (
        f"{field} gives all rights in TenantCluster {cluster}: only somebody with the verb {ADMINISTER} on it may set "
        "it, as administrators of the team have"
    )
    return Right(ADMINISTER, GROUP, "tenantclusters", "", change.namespace, cluster, why)


# -- Secrets -----------------------------------------------------------------------------------------------------------


def _provider_config(change: Change) -> Iterator[Right]:
    spec = _spec(change.new)
    refs = [("spec.credentialsRef", spec.get("credentialsRef"))]
    refs += [(f"spec.{each}.credentialsRef", (spec.get(each) or {}).get("credentialsRef")) for each in PROVIDER_TYPES]
    yield from _secrets(change, refs)


def _machine_request(change: Change) -> Iterator[Right]:
    yield from _secrets(change, [("spec.userDataSecretRef", _spec(change.new).get("userDataSecretRef"))])


def _secrets(change: Change, refs: Iterable[tuple[str, Any]]) -> Iterator[Right]:
    """Also when only the address beside it changes."""
    if change.old is not None and _spec(change.old) == _spec(change.new):
        return
    for field, ref in refs:
        if isinstance(ref, Mapping) and ref.get("name"):
            namespace = str(ref.get("namespace") or change.namespace)
            why = f"{field}: only somebody who may read Secret {namespace}/{ref['name']} may have it sent to a provider"
            yield Right("get", "", "secrets", "", namespace, str(ref["name"]), why)


_BY_PLURAL: Mapping[str, Callable[[Change], Iterator[Right]]] = {
    "tenantclusters": _tenant_cluster,
    "tenantaddons": _tenant_addon,
    "providerconfigs": _provider_config,
    "machinerequests": _machine_request,
}


def _meta(obj: Json | None) -> Json:
    return (obj or {}).get("metadata") or {}


def _spec(obj: Json) -> Json:
    return obj.get("spec") or {}
