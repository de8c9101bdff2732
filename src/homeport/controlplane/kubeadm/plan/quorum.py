"""Whether etcd and the control plane would still work after a change. Never guessed in favour of the change."""

from __future__ import annotations

from collections.abc import Iterable

from homeport.controlplane.kubeadm.observe.state import Observed


def etcd_problem(observed: Observed, *, removed: str = "", added: bool = False) -> str:
    """Why the members, with one removed or added, would be without quorum; '' if they would have it.

    A new member counts as unhealthy, except beside a single one: two members tolerate no failure anyhow.
    """
    members = observed.members
    if not members:
        return "the members of etcd are unknown: no reachable member has quorum"
    voting, unhealthy, starting = 0, [], []
    if added:
        voting += 1
        if len(members) > 1:
            unhealthy.append("the new one")
    strays = {each.name for each in observed.strays}
    by_member = {machine.member: machine for machine in observed.machines if machine.member}
    for member in members:
        if member.name and member.name == removed:
            continue
        if not member.name or member.learner:
            starting.append(member.name or f"{member.id:x}")
            continue
        voting += 1
        machine = by_member.get(member.name)
        if machine is None:
            if member.id in observed.alarmed:
                unhealthy.append(f"{member.name} (alarm)")
            elif member.name in strays and member.name not in observed.answering:
                unhealthy.append(f"{member.name} (has no Machine and does not answer)")
        elif machine.etcd_problem:
            unhealthy.append(f"{member.name} ({machine.etcd_problem})")
    if starting:
        return f"member {', '.join(starting)} of etcd has not become a voter yet"
    needed = voting // 2 + 1
    if voting - len(unhealthy) >= needed:
        return ""
    listed = ", ".join(unhealthy) or "none of them"
    return f"etcd would have {voting} voting members and needs {needed} healthy ones; unhealthy: {listed}"


def components_problem(observed: Observed, *, removed: str = "") -> str:
    """Why no Machine but `removed` could carry the control plane; '' if one can."""
    others = [machine for machine in observed.machines if machine.name != removed]
    if not observed.machines or any(machine.node and not machine.problems for machine in others):
        return ""
    said = [f"{machine.name}: {_first(machine.problems.values()) or 'has no Node'}" for machine in others]
    return f"no other Machine has a healthy control plane ({'; '.join(said) or 'there are none'})"


def _first(texts: Iterable[str]) -> str:
    return next(iter(texts), "")
