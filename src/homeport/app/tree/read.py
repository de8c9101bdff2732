"""Reads the objects of a cluster: of all kinds that take part in its life, in its namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from homeport.api.addon.v1alpha1 import GROUP as ADDON_GROUP
from homeport.api.butler.v1alpha1.part import GROUP as BUTLER_GROUP
from homeport.api.k0rdent.v1beta1.part import GROUP as K0RDENT_GROUP
from homeport.api.k0smotron.part import GROUP as K0SMOTRON_GROUP
from homeport.api.kamaji.v1alpha1 import GROUP as KAMAJI_GROUP
from homeport.api.meta import Resource, Unstructured
from homeport.api.steward.v1alpha1.group import GROUP as STEWARD_GROUP
from homeport.capi.name import GROUP
from homeport.client.errors import ApiError, Forbidden, NotFound
from homeport.client.protocol import Client, Key, Query
from homeport.client.restmapper import RestMapper

_GROUPS = frozenset({ADDON_GROUP, BUTLER_GROUP, K0RDENT_GROUP, K0SMOTRON_GROUP, KAMAJI_GROUP, STEWARD_GROUP})
# What users create to get a cluster, the most abstract first.
ROOTS = ((K0RDENT_GROUP, "ClusterDeployment"), (BUTLER_GROUP, "TenantCluster"), (GROUP, "Cluster"))
_AT_ONCE = 12
_SOURCE_NAMESPACE, _SOURCE_NAME = f"{BUTLER_GROUP}/source-namespace", f"{BUTLER_GROUP}/source-name"


class NoCluster(Exception):
    """There is no cluster of this name."""


@dataclass(slots=True)
class Found:
    """The object that the user asked about, and everything around it."""

    roots: Sequence[Unstructured]
    objects: list[Unstructured] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


class Reader:
    """Reads through one client. The kinds that the server has are asked for once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._kinds: list[Resource] | None = None
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def read(self, key: Key) -> Found:
        """The cluster of this name, by any of its APIs. Raises NoCluster."""
        for group, kind in ROOTS:
            obj = await self._get(group, kind, key)
            if obj is not None:
                return await self._around([await self._above(obj)])
        raise NoCluster(await self._advice(key))

    async def read_all(self, namespace: str) -> Found:
        """All clusters of a namespace; '': of all namespaces."""
        found: list[Unstructured] = []
        refused: list[str] = []
        for group, kind in ROOTS:
            listed, forbidden = await self._list(await self._kind(group, kind), namespace)
            found += listed
            refused += [forbidden] if forbidden else []
        if refused and not found:
            raise NoCluster(_no_right(refused, namespace))
        return await self._around(roots_of(found))

    async def _above(self, obj: Unstructured) -> Unstructured:
        """The platform's object that a Cluster was created for."""
        refs = [ref for ref in obj.metadata.get("ownerReferences") or () if ref.get("kind") == "ClusterDeployment"]
        if refs:
            return await self._get(K0RDENT_GROUP, "ClusterDeployment", Key(obj.namespace, refs[0]["name"])) or obj
        source = source_of(obj)
        found = await self._get(BUTLER_GROUP, "TenantCluster", source[1]) if source else None
        return obj if found is None or not is_home(found, obj.namespace) else found

    async def _around(self, roots: Sequence[Unstructured]) -> Found:
        spaces = {each.namespace for each in roots}
        spaces |= {str((each.get("status") or {}).get("tenantNamespace") or "") for each in roots}
        answers = await asyncio.gather(
            *(self._list(kind, space) for kind in await self.kinds() if kind.namespaced for space in spaces if space)
        )
        objects = {each.uid: each for listed, _ in answers for each in listed}
        return Found(roots, list(objects.values()), sorted({refused for _, refused in answers if refused}))

    async def kinds(self) -> list[Resource]:
        """All kinds that the server has of those that take part in the life of clusters."""
        if self._kinds is None:
            listed = await RestMapper(self._client).listed()
            self._kinds = [each for each in listed if is_part(each)]
        return self._kinds

    async def _kind(self, group: str, kind: str) -> Resource | None:
        return next((each for each in await self.kinds() if (each.group, each.kind) == (group, kind)), None)

    async def _get(self, group: str, kind: str, key: Key) -> Unstructured | None:
        resource = await self._kind(group, kind)
        try:
            return None if resource is None else await self._client.get(resource, key)
        except (NotFound, Forbidden):
            return None

    async def _list(self, kind: Resource | None, namespace: str) -> tuple[Sequence[Unstructured], str]:
        """The objects, and the kind if the user may not list it."""
        if kind is None:
            return (), ""
        try:
            async with self._slots:
                return (await self._client.list(kind, Query(namespace=namespace))).items, ""
        except Forbidden:
            return (), kind.kind
        except ApiError as error:
            if error.http_code in (404, 405):  # deleted since, or a kind that can't be listed
                return (), ""
            raise

    async def _advice(self, key: Key) -> str:
        import difflib

        text = f"no Cluster, TenantCluster or ClusterDeployment {key.name!r} in namespace {key.namespace!r}"
        found: list[Unstructured] = []
        refused: list[str] = []
        for group, kind in ROOTS:
            resource = await self._kind(group, kind)
            listed, forbidden = await self._list(resource, "")
            if forbidden:  # all namespaces are more than many users may list
                listed, forbidden = await self._list(resource, key.namespace)
            found += listed
            refused += [forbidden] if forbidden else []
        if refused and not found:
            return _no_right(refused, key.namespace)
        elsewhere = sorted({each.namespace for each in found if each.name == key.name})
        if elsewhere:
            return f"{text}: there is one in namespace {_or(elsewhere)}, use -n"
        here = sorted({each.name for each in found if each.namespace == key.namespace})
        near = difflib.get_close_matches(key.name, here, n=1)
        if near:
            return f"{text}: did you mean {near[0]!r}?"
        return f"{text}: it has {', '.join(here)}" if here else f"{text}: this namespace has no clusters"


def is_part(kind: Resource) -> bool:
    """Whether objects of this kind take part in the life of a cluster."""
    return kind.group in _GROUPS or kind.group.endswith(GROUP)


def roots_of(objects: Iterable[Unstructured]) -> list[Unstructured]:
    """What users created to get a cluster, without what was made for one of these."""
    found = [each for each in objects if (_group(each), each.get("kind")) in ROOTS]
    known = {_place(each): each for each in found}
    return [each for each in found if not _owned(each) and not _is_made_for(each, known)]


def _is_made_for(obj: Unstructured, known: Mapping[tuple[str, Key], Unstructured]) -> bool:
    source = source_of(obj)
    found = None if source is None else known.get(source)
    return found is not None and is_home(found, obj.namespace)


def is_home(tenant: Unstructured, namespace: str) -> bool:
    """Whether a Cluster of this namespace can be that of the TenantCluster: anybody may write the labels that name one,
    and only Butler writes its status."""
    home = (tenant.get("status") or {}).get("tenantNamespace")
    return not home or home == namespace


def source_of(obj: Unstructured) -> tuple[str, Key] | None:
    """Kind and key of the object in another namespace that this one was created for."""
    labels = obj.metadata.get("labels") or {}
    namespace, name = labels.get(_SOURCE_NAMESPACE), labels.get(_SOURCE_NAME)
    return ("TenantCluster", Key(namespace, name)) if namespace and name else None


def _group(obj: Unstructured) -> str:
    """k0smotron has a kind Cluster, too: it is a part of a control plane."""
    return str(obj.get("apiVersion")).rpartition("/")[0]


def _place(obj: Unstructured) -> tuple[str, Key]:
    return str(obj.get("kind")), Key(obj.namespace, obj.name)


def _owned(obj: Unstructured) -> bool:
    return any(ref.get("kind") == "ClusterDeployment" for ref in obj.metadata.get("ownerReferences") or ())


def _no_right(kinds: Iterable[str], namespace: str) -> str:
    """Nothing may be said about clusters that the user can't see."""
    place = f"namespace {namespace!r}" if namespace else "all namespaces"
    advice = "ask an administrator for the right, or name a namespace with -n"
    return f"you may not list {_or(f'{kind}s' for kind in kinds)} in {place}: {advice}"


def _or(names: Iterable[str]) -> str:
    return " or ".join(names)
