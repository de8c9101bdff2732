"""Objects of an add-on in a workload cluster: applied with server-side apply, and deleted only if they are its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from homeport.addons.name import ADDON_LABEL, OWNER_ANNOTATION, label_value, owner_value
from homeport.addons.stamp import Stamp, stamp_of
from homeport.addons.target.autoscale import contains, scaled
from homeport.addons.target.drift import kept
from homeport.addons.target.inventory import WRITE, Ref, digest_of
from homeport.addons.target.repair import Repairs
from homeport.addons.target.watch import APPLIED, Watches
from homeport.api.addon.v1alpha1 import DriftRule
from homeport.api.meta import Resource, Unstructured
from homeport.capi.remote.workload import Remote
from homeport.client.absence import find_object
from homeport.client.errors import ApiError, BadRequest, Conflict, NotFound, Timeout, Unauthorized, Unavailable
from homeport.client.protocol import Client, Key, Query
from homeport.client.restmapper import RestMapper
from homeport.machinery.manifest import described

Json = dict[str, Any]
Fence = Callable[[], object]

KEEP_ANNOTATION = "helm.sh/resource-policy"
_LONGEST = 400  # characters of what an API server says; some repeat the whole object
_SHARED = "Namespace"  # applied, but never claimed: others put their objects into it


class Failure(NamedTuple):
    """An object that is not there as it should be. `lost`: the cluster does not answer, no use to go on."""

    what: str
    why: str
    reason: str = "ApplyFailed"
    lost: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


class Left(NamedTuple):
    """An object as we left it, and the digest of the text that was applied."""

    digest: str
    stamp: Stamp


Stamps = dict[tuple[str, str, str, str], Left]  # by the identity of the object


@dataclass(frozen=True, slots=True)
class Placed:
    """An object of the add-on and where the cluster serves it."""

    ref: Ref
    kind: Resource
    body: Json


@dataclass(slots=True)
class Target:
    """One add-on in one cluster, for one reconcile."""

    remote: Remote
    addon: Key
    watches: Watches
    fence: Fence
    stamps: Stamps
    namespace: str = "default"  # of objects that name none
    adopt: bool = False
    yields: bool = False  # to a release that somebody installs with Helm
    ignored: Sequence[DriftRule] = ()
    repairs: Repairs | None = None
    rivals: frozenset[str] = frozenset()  # names of the other add-ons of the cluster
    mapper: RestMapper | None = None

    @property
    def client(self) -> Client:
        return self.remote.client

    @property
    def served(self) -> RestMapper:
        if self.mapper is None:
            self.mapper = RestMapper(self.client)
        return self.mapper

    # -- applying ----------------------------------------------------------------------------------------------

    async def place(self, obj: Mapping[str, Any]) -> Placed:
        """Raises NotFound when the cluster does not serve the kind (yet)."""
        kind = await self.served.find(obj["apiVersion"], obj["kind"])
        meta = dict(obj["metadata"])
        if not meta.get("name"):
            raise BadRequest("metadata.name is missing: generateName can't be used in an add-on")
        if kind.namespaced:
            meta["namespace"] = meta.get("namespace") or self.namespace
        else:
            meta.pop("namespace", None)
        if kind.kind != _SHARED:
            meta["labels"] = {**(meta.get("labels") or {}), ADDON_LABEL: label_value(self.addon.name)}
            meta["annotations"] = {**(meta.get("annotations") or {}), OWNER_ANNOTATION: owner_value(self.addon)}
        ref = Ref(kind.api_version, kind.kind, meta.get("namespace", ""), meta["name"])
        return Placed(ref, kind, {**obj, "metadata": meta})

    async def apply(self, placed: Placed) -> Failure | None:
        try:
            return await self._apply(placed)
        except ApiError as error:
            return failure(described(placed.body), error)

    async def _apply(self, placed: Placed) -> Failure | None:
        ref, body = placed.ref, placed.body
        digest = digest_of((body,))
        if not self._is_due(placed, digest):
            return None
        left = self.stamps.get(ref.identity)
        if left is not None and left.digest == digest and self.repairs is not None:
            if why := self.repairs.begin(ref.identity):
                return Failure(str(ref), why, "DriftRepeats")
        self.fence()  # workload clusters don't know which of several replicas leads
        live = await self._live(placed.kind, ref)
        claimed = ref.kind != _SHARED
        if live is not None and claimed and not self.owns(live) and not self._may_adopt(live):
            return Failure(str(ref), self._foreign(live), "ObjectNotOwned")
        if live is not None:
            body = kept(body, live, self.ignored)
            theirs = await scaled(self.client, body, live)
            if theirs is not body and contains(live, theirs):
                self.stamps[ref.identity] = Left(digest, stamp_of(live))
                return None
            body = theirs
        try:
            # What did not exist a moment ago and does now is somebody else's: then nothing is forced upon it.
            made = await self.client.apply(body, WRITE, kind=placed.kind, force=live is not None)
        except Conflict as error:
            return Failure(str(ref), f"somebody else creates it at the same time: {short(str(error))}", "ApplyFailed")
        self.stamps[ref.identity] = Left(digest, stamp_of(made))
        if claimed:
            self.watches.follow(self.remote, placed.kind, APPLIED, self.addon)
        return None

    def _is_due(self, placed: Placed, digest: str) -> bool:
        """Whether it was not applied yet, or was changed since."""
        left = self.stamps.get(placed.ref.identity)
        if left is None or left.digest != digest:
            return True
        if placed.ref.kind == _SHARED or not self.watches.knows(self.remote, placed.kind, APPLIED):
            return False  # the first list of the watch brings us back
        seen = self.watches.find(self.remote, placed.kind, placed.ref, APPLIED)
        return seen is None or left.stamp.is_outdated(seen)

    def owns(self, live: Unstructured) -> bool:
        return (live.metadata.get("annotations") or {}).get(OWNER_ANNOTATION) == owner_value(self.addon)

    def _may_adopt(self, live: Unstructured) -> bool:
        """Two add-ons that adopt from each other would never end."""
        return self.adopt and not self._rival(live)

    def _rival(self, live: Unstructured) -> str:
        """The other add-on of this cluster that owns the object; '' if none does."""
        owner = str((live.metadata.get("annotations") or {}).get(OWNER_ANNOTATION) or "")
        return owner if owner in {owner_value(Key(self.addon.namespace, name)) for name in self.rivals} else ""

    def _foreign(self, live: Unstructured) -> str:
        if rival := self._rival(live):
            return f"it exists in the cluster and belongs to ClusterAddon {rival}: remove it from one of the two"
        owner = (live.metadata.get("annotations") or {}).get(OWNER_ANNOTATION)
        whose = f"belongs to ClusterAddon {owner}" if owner else "does not belong to this add-on"
        return f"it already exists in the cluster and {whose}: delete it, or set spec.conflictPolicy to Adopt"

    async def _live(self, kind: Resource, ref: Ref) -> Unstructured | None:
        return await find_object(self.client, kind, Key(ref.namespace, ref.name))

    # -- looking -----------------------------------------------------------------------------------------------

    async def look(self, kind: Resource, ref: Ref, query: Query = APPLIED) -> Unstructured | None:
        """The object from the watch, or read if that has not begun."""
        if query is APPLIED and ref.kind == _SHARED:
            return await self._live(kind, ref)
        if self.watches.knows(self.remote, kind, query):
            return self.watches.find(self.remote, kind, ref, query)
        return await self._live(kind, ref)

    # -- deleting ----------------------------------------------------------------------------------------------

    async def delete(self, ref: Ref) -> str:
        """'' when it is gone or not ours to delete; otherwise what keeps it. Raises ApiError."""
        try:
            kind = await self.served.find(ref.api_version, ref.kind)
        except NotFound:
            return ""
        live = await self._live(kind, ref)
        self.stamps.pop(ref.identity, None)
        if live is None or not self.owns(live) or _kept_by_policy(live):
            return ""
        if live.metadata.get("deletionTimestamp"):
            return _held(ref, live)
        if ref.kind == "CustomResourceDefinition" and await self.in_use(live):
            return ""
        self.fence()
        try:
            left = await self.client.delete(kind, Key(ref.namespace, ref.name), uid=live.uid, propagation="Background")
        except NotFound:
            return ""
        return _held(ref, left) if left.get("kind") != "Status" else ""

    async def in_use(self, definition: Unstructured) -> bool:
        """Whether somebody's objects would be deleted with a definition."""
        spec = definition.get("spec") or {}
        version = next((each["name"] for each in spec.get("versions") or () if each.get("storage")), "")
        names, scope = spec.get("names") or {}, spec.get("scope")
        kind = Resource(spec["group"], version, names["kind"], names["plural"], scope == "Namespaced")
        try:
            return bool((await self.client.list(kind, Query(limit=1))).items)
        except NotFound:
            return False


def failure(what: str, error: ApiError) -> Failure:
    lost = isinstance(error, Unavailable | Timeout | Unauthorized)
    return Failure(what, short(str(error)), "ClusterUnreachable" if lost else "ApplyFailed", lost)


def short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def removal_waves(refs: Iterable[Ref]) -> tuple[list[Ref], list[Ref]]:
    """The order of a removal: custom resources first, while the software that cleans up after them still runs."""
    listed = list(refs)[::-1]
    return [each for each in listed if _is_custom(each)], [each for each in listed if not _is_custom(each)]


def _is_custom(ref: Ref) -> bool:
    group = ref.api_version.rpartition("/")[0]
    return "." in group and not group.endswith(".k8s.io")


def _held(ref: Ref, obj: Unstructured) -> str:
    finalizers = obj.metadata.get("finalizers") or []
    return f"{ref} is being deleted" + (f" (finalizers: {', '.join(finalizers)})" if finalizers else "")


def _kept_by_policy(obj: Unstructured) -> bool:
    return (obj.metadata.get("annotations") or {}).get(KEEP_ANNOTATION) == "keep"
