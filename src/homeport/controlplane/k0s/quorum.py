"""Whether etcd would still work after a change. Never guessed in favour of the change. Pure."""

from __future__ import annotations

from homeport.controlplane.k0s.observed import Observed


def etcd_problem(observed: Observed, *, removed: str = "", added: bool = False) -> str:
    """Why the members, with one removed or added, would be without quorum; '' if they would have it.

    A member counts as healthy only if its Machine is known to be. A new one counts as unhealthy, except beside a single
    one: two members tolerate no failure anyhow.
    """
    if not observed.etcd:
        return ""
    if observed.down:
        return f"the members of etcd are unknown: {observed.down}"
    members = observed.voters
    if not members:
        return "the members of etcd are unknown: k0s reports none"
    healthy = {each.member for each in observed.machines if each.member and each.healthy}
    known = {each.member: each for each in observed.machines if each.member}
    rest = [each.name for each in members if each.name != removed]
    voting, unhealthy = len(rest), []
    for name in rest:
        if name not in known:
            unhealthy.append(f"{name} (has no Machine)")
        elif name not in healthy:
            unhealthy.append(f"{name} ({known[name].problem})")
    if added:
        voting += 1
        if len(rest) > 1:
            unhealthy.append("the new one")
    needed = voting // 2 + 1
    if voting - len(unhealthy) >= needed and voting:
        return ""
    listed = ", ".join(unhealthy) or "none of them"
    return f"etcd would have {voting} voting members and needs {needed} healthy ones; unhealthy: {listed}"
