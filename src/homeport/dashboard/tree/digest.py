"""What an object and all objects below it amount to, from the digests of those directly below. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from homeport.app.tree.branch import Reference
from homeport.app.tree.facts import replicas
from homeport.app.tree.grow import reference
from homeport.app.tree.structure import DEEPEST, Item
from homeport.capi.object.cause import ReportedProblem, described, explaining
from homeport.dashboard.tree.fold import Look, Shown, fold

SCALED = frozenset({"MachineDeployment", "MachinePool", "KubeadmControlPlane", "K0sControlPlane"})


class Blame(NamedTuple):
    """What is wrong, where, and how people get there."""

    path: tuple[str, ...]
    said: ReportedProblem
    at: Reference

    @property
    def sentence(self) -> str:
        return ": ".join([*self.path, self.said.message])


class Counts(NamedTuple):
    """`reported` and `reported_ready`: what the owners of machines say, also before these are read."""

    machines: int = 0
    ready: int = 0
    desired: int = 0
    reported: int = 0
    reported_ready: int = 0


_NONE, _READY, _UNREADY = Counts(), Counts(machines=1, ready=1), Counts(machines=1)


class Digest(NamedTuple):
    look: Look
    troubled: bool  # it or something below it reports a problem
    blame: Blame | None
    counts: Counts
    version: str  # of the first machine
    lost: Blame | None = None  # the first that its hypervisor can't be asked about

    @property
    def problem(self) -> str:
        return self.look[2]


class Below(NamedTuple):
    """All objects directly below another one, taken together."""

    troubled: bool
    blames: list[tuple[tuple[Item, Blame], ReportedProblem]]
    counts: Counts
    version: str
    lost: Blame | None
    shown: list[tuple[Item, Shown]]


def _sum(counts: Iterable[Counts]) -> Counts:
    total = [0, 0, 0, 0, 0]
    for each, times in Counter(counts).items():  # of 10,000 machines, most count alike
        for place, number in enumerate(each):
            total[place] += times * number
    return Counts(*total)


def gather(children: Sequence[Item], digests: Sequence[Digest]) -> Below:
    shown = fold([each.kind for each in children], [each.look for each in digests])
    return Below(
        troubled=any(each.troubled for each in digests),
        blames=[((c, d.blame), d.blame.said) for c, d in zip(children, digests, strict=True) if d.blame is not None],
        counts=_sum(each.counts for each in digests),
        version=next((each.version for each in digests if each.version), ""),
        lost=next((each.lost for each in digests if each.lost is not None), None),
        shown=[(children[each.place], each) for each in shown],
    )


NOTHING = gather((), ())


def digest(item: Item, below: Below) -> Digest:
    facts = item.facts
    problem = "" if facts.waits and below.troubled else facts.problem
    return Digest(
        look=(facts.state, facts.version, problem, facts.healthy),
        troubled=below.troubled or bool(problem) or any(each.problem for each in facts.nodes),
        blame=_blame(item, below),
        counts=_sum((_own(item), below.counts)),
        version=(facts.version if item.kind == "Machine" else "") or below.version,
        # What is above it only repeats it.
        lost=below.lost
        if facts.lost is None or below.lost is not None
        else Blame((), facts.lost, reference(item.object)),
    )


def _blame(item: Item, below: Below) -> Blame | None:
    own = item.facts.said
    better = explaining(own, below.blames)
    if better is not None:
        (child, blame), _ = better
        return Blame((described(child.object), *blame.path)[:DEEPEST], blame.said, blame.at)
    return None if own is None else Blame((), own, reference(item.object))


def _own(item: Item) -> Counts:
    if item.kind == "Machine":
        return _READY if item.facts.healthy is True else _UNREADY
    if item.kind not in SCALED:
        return _NONE
    status = item.object.get("status") or {}
    desired = int(replicas(item.object).rpartition(" ")[2] or 0)
    return Counts(0, 0, desired, int(status.get("replicas") or 0), int(status.get("readyReplicas") or 0))
