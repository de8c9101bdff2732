"""What objects report that no other check knows: nothing that is wrong is left out."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.app.doctor.check import guest
from homeport.app.doctor.check.node import waits_for_network
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
WAITING = "Waiting"


def reported(facts: Facts) -> Iterator[Diagnosis]:
    """Objects that have a cause of their own."""
    for each in facts.problems():
        said = complaint(each.object)
        if said is None or said.waits or each.waits or each.borrowed or each.reason in _LATER:
            continue
        if each.kind == "Machine" and waits_for_network(facts, each.object):
            continue
        late = each.reason not in _UNDER_WAY or each.seconds > _PATIENCE_SECONDS
        yield Diagnosis(each.reason, "other", each.kind, each.key, each.message, show(facts, each), serious=late)


def waiting(facts: Facts) -> Iterator[Diagnosis]:
    """Clusters that wait, where nothing else explains it: it may only be too early."""
    # A machine that prints why it does not start explains why nothing answers.
    failed = {each.object for each in guest.console(facts)}
    explained = {
        (each.namespace, str((each.get("spec") or {}).get("clusterName")))
        for each in facts.of_kind("Machine")
        if f"{each.namespace}/{each.name}" in failed
    }
    for root in facts.roots:
        said = complaint(root)
        if said is not None and said.waits and (root.namespace, root.name) not in explained:
            key = f"{root.namespace}/{root.name}"
            cure = facts.commands.run("describe", "cluster", root.name, "-n", root.namespace)
            yield Diagnosis(WAITING, "other", str(root.get("kind")), key, said.message, cure, serious=False)


CHECKS = (reported, waiting)
