"""What objects report that no other check knows: nothing that is wrong is left out."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.app.doctor.check.provider import show
from homeport.app.doctor.diagnosis import Diagnosis
from homeport.app.doctor.fact import Facts
from homeport.capi.object.cause import complaint

# These come after something else, which reports more.
_LATER = frozenset(
    {
        "ControlplaneNotInitialized",
        "ClusterInfrastructureNotReady",
        "BootstrapDataNotReady",
        "InspectionFailed",
        "ProbeFailed",
    }
)
# What goes on by itself, for a while.
_UNDER_WAY = frozenset({"CreatingVM", "PoweringOn", "Restarting", "Deleting"})
_PATIENCE_SECONDS = 600.0


def reported(facts: Facts) -> Iterator[Diagnosis]:
    """Objects that have a cause of their own."""
    for each in facts.problems():
        said = complaint(each.object)
        if said is None or said.waits or each.waits or each.borrowed or each.reason in _LATER:
            continue
        late = each.reason not in _UNDER_WAY or each.seconds > _PATIENCE_SECONDS
        yield Diagnosis(each.reason, "other", each.kind, each.key, each.message, show(facts, each), serious=late)


def waiting(facts: Facts) -> Iterator[Diagnosis]:
    """Clusters that wait, where nothing else explains it: it may only be too early."""
    for root in facts.roots:
        said = complaint(root)
        if said is not None and said.waits:
            key = f"{root.namespace}/{root.name}"
            cure = facts.commands.run("describe", "cluster", root.name, "-n", root.namespace)
            yield Diagnosis("Waiting", "other", str(root.get("kind")), key, said.message, cure, serious=False)


CHECKS = (reported, waiting)
