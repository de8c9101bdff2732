"""What objects report that no other check knows: nothing that is wrong is left out."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.app.doctor.check.provider import show
from homeport.app.doctor.diagnosis import Diagnosis
from homeport.app.doctor.fact import Facts
from homeport.capi.object.cause import complaint

# These come after something else, which reports more.
_LATER = frozenset(
    {"ControlplaneNotInitialized", "ClusterInfrastructureNotReady", "BootstrapDataNotReady", "InspectionFailed"}
)


def reported(facts: Facts) -> Iterator[Diagnosis]:
    """Objects that have a cause of their own."""
    for each in facts.problems():
        said = complaint(each.object)
        if said is not None and not said.waits and not each.borrowed and each.reason not in _LATER:
            yield Diagnosis(each.reason, "other", each.kind, each.key, each.message, show(facts, each))


def waiting(facts: Facts) -> Iterator[Diagnosis]:
    """Clusters that wait, where nothing else explains it: it may only be too early."""
    for root in facts.roots:
        said = complaint(root)
        if said is not None and said.waits:
            key = f"{root.namespace}/{root.name}"
            cure = facts.commands.run("describe", "cluster", root.name, "-n", root.namespace)
            yield Diagnosis("Waiting", "other", str(root.get("kind")), key, said.message, cure, serious=False)


CHECKS = (reported, waiting)
