"""Where the next Machine goes, and which is the next to go."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.controlplane.kubeadm.observe.state import MachineState, Observed


def pick_domain(observed: Observed) -> str:
    """The failure domain with the fewest up-to-date Machines, then the fewest at all. '' where there are none."""
    if not observed.domains:
        return ""

    def load(domain: str) -> tuple[int, int, str]:
        there = [machine for machine in observed.machines if machine.failure_domain == domain]
        return sum(1 for machine in there if not machine.outdated), len(there), domain

    return min(observed.domains, key=load)


def pick_machine(observed: Observed) -> MachineState:
    """The one to go: of those that come first into question, the oldest of the fullest failure domain."""
    eligible = _eligible(observed)
    domains = set(observed.domains)

    def count(machine: MachineState) -> int:
        if machine.failure_domain not in domains:
            return len(observed.machines) + 1  # where no Machine should be
        return sum(1 for each in observed.machines if each.failure_domain == machine.failure_domain)

    if not domains:
        return min(eligible, key=lambda each: (each.created, each.name))
    return min(eligible, key=lambda each: (-count(each), each.failure_domain, each.created, each.name))


def _eligible(observed: Observed) -> Sequence[MachineState]:
    outdated = observed.outdated
    choices = (
        [each for each in outdated if each.marked_for_deletion],
        [each for each in observed.machines if each.marked_for_deletion],
        [each for each in outdated if each.problems or each.etcd_problem],
        outdated,
    )
    return next((each for each in choices if each), observed.machines)
