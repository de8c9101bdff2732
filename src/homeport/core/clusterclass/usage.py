"""What Clusters need of their class, so that it stays there. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from homeport.client.errors import Cause
from homeport.core.topology.compatibility import classes
from homeport.core.topology.part import WORKERS, has_check, is_autoscaled
from homeport.core.topology.variable import variable
from homeport.core.topology.variable.value import fill_in, value_causes, values_of

Json = Mapping[str, Any]

_SHOWN = 3


def uses(cluster: Json, namespace: str, name: str) -> bool:
    """Whether the Cluster is made from this class."""
    ref = topology_of(cluster).get("classRef") or {}
    own = (cluster.get("metadata") or {}).get("namespace")
    return ref.get("name") == name and (ref.get("namespace") or own) == namespace


def topology_of(cluster: Json) -> Json:
    return (cluster.get("spec") or {}).get("topology") or {}


def deletion_causes(clusters: Sequence[Json]) -> Iterator[Cause]:
    if clusters:
        yield Cause.forbidden(
            "metadata.name", f"it is used by {listed(clusters)}: first delete them, or switch them to another class"
        )


def usage_causes(old: Json, new: Json, clusters: Sequence[Json]) -> Iterator[Cause]:
    """What the new state of a class takes away from Clusters that use it."""
    if not clusters:
        return
    yield from _versions(new, clusters)
    yield from _removed(old, new, clusters)
    yield from _checks(old, new, clusters)
    yield from _autoscaled(new, clusters)
    if (old.get("spec") or {}).get("variables") != (new.get("spec") or {}).get("variables"):
        yield from _dropped(old, new, clusters)
        yield from _values(new, clusters)


def _versions(new: Json, clusters: Sequence[Json]) -> Iterator[Cause]:
    offered = (new.get("spec") or {}).get("kubernetesVersions") or ()
    lost = [each for each in clusters if topology_of(each).get("version") not in offered]
    if offered and lost:
        versions = ", ".join(sorted({str(topology_of(each).get("version")) for each in lost}))
        yield _forbidden(f"{versions} must be listed: {listed(lost)} use it", "spec.kubernetesVersions")


def _removed(old: Json, new: Json, clusters: Sequence[Json]) -> Iterator[Cause]:
    for part in WORKERS:
        for name in sorted(classes(old, part).keys() - classes(new, part).keys()):
            users = [each for each in clusters if any(w.get("class") == name for w in workers(each, part))]
            if users:
                yield _forbidden(f'class "{name}" can\'t be removed: it is used by {listed(users)}', _path(part))


def _checks(old: Json, new: Json, clusters: Sequence[Json]) -> Iterator[Cause]:
    """A health check that is switched on in a Cluster and defined in the class alone."""
    field = "spec.controlPlane"
    if has_check(_plane(old)) and not has_check(_plane(new)):
        users = [each for each in clusters if _relies(topology_of(each).get("controlPlane") or {})]
        if users:
            yield _forbidden(f"can't be removed: it is enabled in {listed(users)}", f"{field}.healthCheck")
    was = classes(old, WORKERS[0])
    for i, each in enumerate(((new.get("spec") or {}).get("workers") or {}).get(WORKERS[0]) or ()):
        name = each.get("class")
        if not has_check(was.get(name) or {}) or has_check(each):
            continue
        users = [c for c in clusters if any(w.get("class") == name and _relies(w) for w in workers(c, WORKERS[0]))]
        if users:
            path = f"{_path(WORKERS[0])}[{i}].healthCheck"
            yield _forbidden(f"can't be removed: it is enabled in {listed(users)}", path)


def _plane(cluster_class: Json) -> Json:
    return (cluster_class.get("spec") or {}).get("controlPlane") or {}


def _relies(part: Json) -> bool:
    return (part.get("healthCheck") or {}).get("enabled") is True and not has_check(part)


def _autoscaled(new: Json, clusters: Sequence[Json]) -> Iterator[Cause]:
    for i, each in enumerate(((new.get("spec") or {}).get("workers") or {}).get(WORKERS[0]) or ()):
        if not is_autoscaled(each):
            continue
        name = each.get("class")
        counted = [c for c in clusters if any(_counts(w, name) for w in workers(c, WORKERS[0]))]
        if counted:
            path = f"{_path(WORKERS[0])}[{i}].metadata.annotations"
            why = f"an autoscaler can't manage replicas that are set in {listed(counted)}: remove replicas there first"
            yield _forbidden(why, path)


def _counts(part: Json, name: Any) -> bool:
    return part.get("class") == name and part.get("replicas") is not None


def _dropped(old: Json, new: Json, clusters: Sequence[Json]) -> Iterator[Cause]:
    for name in sorted(variable.definitions(old).keys() - variable.definitions(new).keys()):
        users = [each for each in clusters if name in _set_in(each)]
        if users:
            why = (
                f'variable "{name}" can\'t be removed: it is set in {listed(users)}. This includes defaults: '
                "remove the default first, then the values, then the variable"
            )
            yield _forbidden(why, "spec.variables")


def _set_in(cluster: Json) -> set[str]:
    return {str(value.get("name")) for each in values_of(dict(topology_of(cluster))) for value in each.listed}


def _values(new: Json, clusters: Iterable[Json]) -> Iterator[Cause]:
    """The values of Clusters must be good by the new definitions; a few that are not are enough to see why."""
    known, told = variable.definitions(new), 0
    for cluster in clusters:
        topology = copy.deepcopy(dict(topology_of(cluster)))
        for each in values_of(topology):
            each.holder[each.field] = [value for value in each.listed if value.get("name") in known]
        fill_in(topology, known)
        wrong = list(value_causes(topology, known))
        for cause in wrong:
            yield _forbidden(
                f"{listed([cluster])} would become invalid: {cause.field}: {cause.message}", "spec.variables"
            )
        told += bool(wrong)
        if told == _SHOWN:
            return


def workers(cluster: Json, part: str) -> list[Json]:
    return list((topology_of(cluster).get("workers") or {}).get(part) or ())


def listed(clusters: Sequence[Json]) -> str:
    """Names for a message: the first few, and how many more."""
    names = [f"{c['metadata'].get('namespace', '')}/{c['metadata'].get('name', '')}" for c in clusters]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"Cluster{'s' if len(names) > 1 else ''} {', '.join(names[:_SHOWN])}{more}"


def _path(part: str) -> str:
    return f"spec.workers.{part}"


def _forbidden(why: str, path: str) -> Cause:
    return Cause.forbidden(path, why)
