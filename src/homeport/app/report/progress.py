"""What holds a plane's objects up, causes before consequences, and what is simply under way. Pure.

An object whose message names another unfinished object waits for that one: it is a consequence. The rest are causes.
A cause is stuck when its controller warns, or when nothing has changed for a while; otherwise it is under way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from homeport.app.report.description import ClusterState, Finding, Unfinished
from homeport.app.report.unmanaged import fold

PATIENCE_SECONDS = 120.0
_NAMED = re.compile(r"\b([A-Za-z]+)(?= (?:([a-z0-9.-]+)/)?([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?))")
_CAUSE = re.compile(r"([A-Z][A-Za-z0-9]+) ([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?): (.+)", re.S)

_Name = tuple[str, str, str]  # kind in lower case, namespace, name


def progress(unfinished: Iterable[Unfinished], clusters: Sequence[ClusterState]) -> tuple[list[Finding], list[Finding]]:
    """What is stuck and what is under way. Nothing happens to a paused Cluster, on purpose."""
    working = [each for each in clusters if not each.paused]
    unmanaged, unfinished = fold(unfinished, clusters)
    found = _by_name(unfinished)
    waits_for = _without_circles({name: _named(item, name, found) for name, item in found.items()}, found)
    waits_for = _with_clusters(waits_for, found)
    found = {name: _with_cause(item, working) for name, item in found.items()}
    waited_by = _inverted(waits_for)
    causes = [name for name, others in waits_for.items() if not others]
    held = {name: _dependents(name, waited_by) for name in causes if _stuck(found[name])}
    behind = {other for others in held.values() for other in others}
    deeper = _deeper(working, found)
    stuck = [_held(found, name, others, deeper) for name, others in held.items()]
    stuck.sort(key=lambda each: (-len(each.waiting), each.kind, each.object))
    # Objects that wait for each other in a circle have no cause: those that warn are shown.
    stuck += [_finding(i, []) for n, i in found.items() if waits_for[n] and n not in behind and _stuck(i)]
    silent = [each for each in working if each.cause and not _explained(each, stuck, behind)]
    late = [each for each in silent if each.seconds > PATIENCE_SECONDS]
    moving = [each for each in working if each not in late]
    going = [
        *_lines(moving, {*behind, *held}),
        *(_cluster_finding(e) for e in silent if e in moving and not e.under_way),
    ]
    going += [_finding(found[name], []) for name in causes if name not in held]
    stuck += [*map(_cluster_finding, late), *unmanaged]
    named = {(each.kind, each.object) for each in stuck}
    return stuck, [each for each in _once(going) if (each.kind, each.object) not in named]


def _with_cause(item: Unfinished, clusters: Sequence[ClusterState]) -> Unfinished:
    """A Cluster knows more about what it waits for than its controller, if that object reports something."""
    if item.kind != "Cluster" or item.wrong or not item.message.startswith("waiting for "):
        return item
    awaited = item.message.removeprefix("waiting for ").partition(" to ")[0]
    for each in clusters:
        if f"{each.namespace}/{each.name}" == item.object and each.cause.startswith(f"{awaited}: "):
            return msgspec.structs.replace(item, message=f"waiting for {each.cause}")
    return item


def _by_name(unfinished: Iterable[Unfinished]) -> dict[_Name, Unfinished]:
    """Several controllers may work on one object: the one that warns says more."""
    found: dict[_Name, Unfinished] = {}
    for item in unfinished:
        name = _name(item)
        if name not in found or (item.wrong and not found[name].wrong):
            found[name] = item
    return found


def _name(item: Unfinished | Finding) -> _Name:
    namespace, _, name = item.object.rpartition("/")
    return item.kind.lower(), namespace, name


def _named(item: Unfinished, own: _Name, known: dict[_Name, Unfinished]) -> list[_Name]:
    """The unfinished objects that the message names."""
    found: list[_Name] = []
    for kind, namespace, name in _NAMED.findall(item.message):
        for spelt in (kind.lower(), kind.lower().removesuffix("s")):
            for other in ((spelt, namespace or own[1], name), (spelt, "", name)):
                if other in known and other != own and other not in found:
                    found.append(other)
    return found


def _without_circles(waits_for: dict[_Name, list[_Name]], found: dict[_Name, Unfinished]) -> dict[_Name, list[_Name]]:
    """An object that warns is the cause of those that wait for it, also where its message names one of them."""
    waited_by = _inverted(waits_for)
    made = dict(waits_for)
    for name, others in waits_for.items():
        if others and found[name].wrong:
            behind = set(_dependents(name, waited_by))
            made[name] = [other for other in others if other not in behind or found[other].wrong]
    return made


def _with_clusters(waits_for: dict[_Name, list[_Name]], found: dict[_Name, Unfinished]) -> dict[_Name, list[_Name]]:
    """Objects that wait without naming a reason, such as workers before the control plane is up, wait for their Cluster
    if that is not finished, unless it waits for them."""
    waited_by = _inverted(waits_for)
    made = dict(waits_for)
    for name, others in waits_for.items():
        item = found[name]
        namespace, _, cluster = item.cluster.rpartition("/")
        above = ("cluster", namespace, cluster)
        if not others and not item.wrong and above != name and above in found:
            if above not in _dependents(name, waited_by):
                made[name] = [above]
    return made


def _deeper(clusters: Iterable[ClusterState], found: dict[_Name, Unfinished]) -> dict[_Name, Finding]:
    """By Cluster, a cause on an object that no controller waits for: a warning about an image, for example."""
    made: dict[_Name, Finding] = {}
    for each in clusters:
        reported = _CAUSE.match(each.cause)
        if reported is None:
            continue
        kind, name, message = reported.groups()
        if (kind.lower(), each.home, name) not in found:
            own = each.cluster or f"{each.namespace}/{each.name}"
            made["cluster", *_split(own)] = Finding(kind, f"{each.home}/{name}", message)
    return made


def _split(place: str) -> tuple[str, str]:
    namespace, _, name = place.rpartition("/")
    return namespace, name


def _held(
    found: dict[_Name, Unfinished], cause: _Name, others: Sequence[_Name], deeper: dict[_Name, Finding]
) -> Finding:
    waiting = [found[other] for other in others]
    reported = next((deeper[other] for other in others if other in deeper), None)
    if reported is None or found[cause].wrong:
        return _finding(found[cause], waiting)
    return msgspec.structs.replace(reported, waiting=[shown(each) for each in (found[cause], *waiting)])


def _inverted(waits_for: dict[_Name, list[_Name]]) -> dict[_Name, list[_Name]]:
    """Who waits for each object."""
    found: dict[_Name, list[_Name]] = {}
    for name, others in waits_for.items():
        for other in others:
            found.setdefault(other, []).append(name)
    return found


def _dependents(cause: _Name, waited_by: dict[_Name, list[_Name]]) -> list[_Name]:
    """All that wait for it, the nearest first."""
    found: dict[_Name, None] = {cause: None}
    newest = [cause]
    while newest:
        newest = [other for name in newest for other in waited_by.get(name, ()) if other not in found]
        found |= dict.fromkeys(newest)
    return list(found)[1:]


def _stuck(item: Unfinished) -> bool:
    return item.wrong or item.seconds > PATIENCE_SECONDS


def _finding(item: Unfinished, waiting: Sequence[Unfinished]) -> Finding:
    return Finding(item.kind, item.object, item.message or item.reason, [shown(each) for each in waiting])


def _cluster_finding(cluster: ClusterState) -> Finding:
    return Finding(cluster.kind, f"{cluster.namespace}/{cluster.name}", cluster.cause)


def shown(item: Unfinished | Finding) -> str:
    """`Kind name`, with the namespace where it is not `default`."""
    return f"{item.kind} {item.object.removeprefix('default/')}"


def _explained(cluster: ClusterState, findings: Sequence[Finding], behind: set[_Name]) -> bool:
    """Whether something that is stuck already explains why the Cluster is not available."""
    namespace, _, name = cluster.cluster.rpartition("/")
    own = (cluster.kind.lower(), cluster.namespace, cluster.name)
    if own in behind or ("cluster", namespace, name) in behind:
        return True
    if any(_name(each) == own for each in findings):
        return True
    return any(each.message in cluster.cause or each.object.rpartition("/")[2] in cluster.cause for each in findings)


def _lines(clusters: Iterable[ClusterState], stuck: set[_Name]) -> list[Finding]:
    """What clusters report, without what only waits for something stuck."""
    found: list[Finding] = []
    for cluster in clusters:
        for line in cluster.under_way:
            head, _, message = line.partition(": ")
            kind, _, name = head.partition(" ")
            if (kind.lower(), cluster.home, name) not in stuck:
                found.append(Finding(kind, f"{cluster.home}/{name}", message))
    return found


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """The first line of each object."""
    found: dict[tuple[str, str], Finding] = {}
    for each in findings:
        found.setdefault((each.kind, each.object), each)
    return list(found.values())
