"""The client with which charts of templates are installed: it marks their objects, and keeps them in bounds.

Charts outside of kcm-system come from users that may have few rights, and are installed with those of the plane. They
get ConfigMaps and objects of Cluster API in their own namespace, and see nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from homeport.api.meta import Object, Resource
from homeport.client.errors import Forbidden, NotFound
from homeport.client.protocol import DEFAULT_WRITE, Client, Key, Page, Query, Write
from homeport.helm.release.record import SECRET_FAMILY
from homeport.machinery.chart.manifest import RESOURCE_POLICY
from homeport.platforms.k0rdent.name import SYSTEM_NAMESPACE

Json = dict[str, Any]

_CONFINED_GROUPS = ("cluster.x-k8s.io", "k0smotron.io")
_RECORD_PREFIX = "sh.helm.release."
_RECORD_LABEL = "owner=helm"


def template_client(
    client: Client,
    labels: Mapping[str, str],
    owners: Sequence[Mapping[str, Any]] = (),
    *,
    namespace: str,
) -> Client:
    """`owners`: of every object in the namespace. Namespaces other than kcm-system are bounds, too."""
    return cast(Client, _TemplateClient(client, labels, owners, namespace))


class _TemplateClient:
    def __init__(
        self, inner: Client, labels: Mapping[str, str], owners: Sequence[Mapping[str, Any]], namespace: str
    ) -> None:
        self._inner: Any = inner
        self._labels = dict(labels)
        self._owners = [dict(each) for each in owners]
        self._namespace = namespace
        self._confined = namespace != SYSTEM_NAMESPACE

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def get(self, kind: Resource, key: Key, **more: Any) -> Any:
        if self._confined and not self._may_read(kind, key.namespace, key.name):
            raise NotFound(f"{kind.kind} {key} is out of reach of charts in namespace {self._namespace}")
        return await self._inner.get(kind, key, **more)

    async def list(self, kind: Resource, query: Query) -> Any:
        if self._confined and not self._may_read(kind, query.namespace, "", query.labels):
            return Page([], "")
        return await self._inner.list(kind, query)

    async def create(
        self, obj: Mapping[str, Any], options: Write = DEFAULT_WRITE, *, kind: Resource, **more: Any
    ) -> Any:
        return await self._inner.create(self._marked(obj, kind), options, kind=kind, **more)

    async def apply(self, obj: Mapping[str, Any], options: Write, *, kind: Resource, **more: Any) -> Any:
        return await self._inner.apply(self._marked(obj, kind), options, kind=kind, **more)

    async def delete(self, kind: type[Object] | Resource, key: Key, **more: Any) -> Any:
        at = kind if isinstance(kind, Resource) else kind.__resource__
        self._check(at, key.namespace, key.name)
        return await self._inner.delete(kind, key, **more)

    def _may_read(self, kind: Resource, namespace: str, name: str, labels: str = "") -> bool:
        if namespace != self._namespace:
            return False
        is_record = name.startswith(_RECORD_PREFIX) or _RECORD_LABEL in labels.split(",")
        return is_record if (kind.group, kind.kind) == ("", "Secret") else _is_admitted(kind)

    def _check(self, kind: Resource, namespace: str, name: str) -> None:
        is_record = (kind.group, kind.kind) == ("", "Secret") and name.startswith(_RECORD_PREFIX)
        if not self._confined or (namespace == self._namespace and (is_record or _is_admitted(kind))):
            return
        where = f"in namespace {namespace}" if namespace else "of the whole cluster"
        raise Forbidden(
            f"{kind.kind} {name} {where}: charts of ClusterDeployments outside of {SYSTEM_NAMESPACE} may only have "
            "ConfigMaps and objects of Cluster API in their own namespace"
        )

    def _marked(self, obj: Mapping[str, Any], kind: Resource) -> Json:
        meta = dict(obj["metadata"])
        self._check(kind, str(meta.get("namespace") or ""), str(meta.get("name") or ""))
        if str(obj.get("type", "")).startswith(SECRET_FAMILY):
            return {**obj}
        meta["labels"] = {**(meta.get("labels") or {}), **self._labels}
        if self._owners and meta.get("namespace") == self._namespace:
            own = {each["uid"] for each in self._owners}
            others = [each for each in meta.get("ownerReferences") or () if each.get("uid") not in own]
            meta["ownerReferences"] = [*others, *self._owners]
        if kind.kind == "CustomResourceDefinition":
            # With the definition, all objects of the kind would go, those of others included.
            meta["annotations"] = {**(meta.get("annotations") or {}), RESOURCE_POLICY: "keep"}
        return {**obj, "metadata": meta}


def _is_admitted(kind: Resource) -> bool:
    if not kind.group:
        return kind.kind == "ConfigMap"
    return any(kind.group == each or kind.group.endswith(f".{each}") for each in _CONFINED_GROUPS)
