"""Objects of a release: repaired, and followed from then on until somebody changes one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from homeport.addons.problem import Problem
from homeport.addons.stamp import Stamp, stamp_of
from homeport.addons.target.autoscale import scaled
from homeport.addons.target.drift import kept, matches
from homeport.addons.target.inventory import Ref
from homeport.addons.target.object import Target
from homeport.addons.target.watch import RELEASED
from homeport.api.addon.v1alpha1 import DriftRule
from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import NotFound
from homeport.helm.release.content import identify
from homeport.helm.release.drift import Comparison
from homeport.helm.release.record import Release
from homeport.helm.release.releases import Releases
from homeport.helm.release.target import Target as ReleaseTarget
from homeport.runtime.clock import Clock

_SHOWN = 5  # lines of a message
_SCALED = ("spec.replicas",)


class Followed(NamedTuple):
    """An object of a release as we left it. Without a stamp it removed itself, as some Jobs do."""

    kind: Resource
    ref: Ref
    stamp: Stamp | None


async def repair(target: Target, release: Release, rules: Sequence[DriftRule], clock: Clock) -> list[Followed]:
    """What others changed is applied again, but for the fields that they may change. Gives all objects."""
    writer = ReleaseTarget(target.client, release.namespace)
    followed, refused = [], []
    for each in await Releases(target.client, clock).compare(release):
        body = await _correction(target, each, rules) if each.drifted else None
        live = each.live
        if body is not None:
            identity = identify(each.object, release.namespace)
            why = "" if target.repairs is None else target.repairs.begin(identity)
            if why:
                refused.append(f"{identity}: {why}")
                continue
            target.fence()
            live = await writer.apply(body)
        found = await _follow(target, release, each.object, live)
        if found is not None:
            followed.append(found)
    if refused:
        raise Problem("DriftRepeats", "\n".join(refused[:_SHOWN]), after=1.0, warning=True)
    return followed


def is_changed(target: Target, objects: Iterable[Followed]) -> bool:
    """Whether one of them is missing or was changed since we left it."""
    return any(_is_changed(target, each) for each in objects)


async def _correction(target: Target, drift: Comparison, rules: Sequence[DriftRule]) -> dict[str, Any] | None:
    """What to apply; None: others may change what they changed."""
    if drift.live is None:
        return drift.object
    body = await scaled(target.client, kept(drift.object, drift.live, rules), drift.live)
    if _is_ignored(drift, rules) or (drift.fields == _SCALED and body is not drift.object):
        return None
    return body


async def _follow(
    target: Target, release: Release, obj: Mapping[str, Any], live: Unstructured | None
) -> Followed | None:
    """None: the cluster does not serve the kind."""
    try:
        kind = await target.served.find(obj["apiVersion"], obj["kind"])
    except NotFound:
        return None
    meta = obj.get("metadata") or {}
    namespace = (meta.get("namespace") or release.namespace) if kind.namespaced else ""
    ref = Ref(obj["apiVersion"], obj["kind"], namespace, str(meta.get("name", "")))
    return Followed(kind, ref, None if live is None else stamp_of(live))


def _is_changed(target: Target, left: Followed) -> bool:
    if not target.watches.knows(target.remote, left.kind, RELEASED):
        return False  # the first list of the watch brings us back
    seen = target.watches.find(target.remote, left.kind, left.ref, RELEASED)
    if seen is None or left.stamp is None:
        return seen is not None or left.stamp is not None
    return left.stamp.is_outdated(seen)


def _is_ignored(drift: Comparison, rules: Sequence[DriftRule]) -> bool:
    """Whether everything that differs may differ."""
    paths = [
        path.removeprefix("/").replace("/", ".")
        for rule in rules
        if matches(rule, drift.object, drift.live or {})
        for path in rule.paths
    ]
    return bool(paths) and all(
        any(field == path or field.startswith(f"{path}.") for path in paths) for field in drift.fields
    )
