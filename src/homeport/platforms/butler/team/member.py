"""Members as the API server knows them: by e-mail address, without those whose User is disabled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from homeport.api.butler.v1alpha1 import User
from homeport.platforms.butler.normal.team import Member

_ORDER = {"admin": 3, "operator": 2, "viewer": 1}


def resolve(members: Iterable[Member], users: Iterable[User]) -> list[Member]:
    """A member is named by the e-mail address, or by the name of the User object."""
    # Of two Users with one address the disabled one counts: a second User gives nobody access back.
    known = sorted(users, key=lambda each: each.spec.disabled)
    by_name = {each.metadata.name: each for each in known}
    by_email = {each.spec.email: each for each in known}
    found = []
    for each in members:
        user = by_email.get(each.name) or by_name.get(each.name) if each.kind == "User" else None
        user = by_email[user.spec.email] if user is not None else None
        if user is None:
            found.append(each)
        elif not user.spec.disabled and not user.metadata.deletion_timestamp:
            found.append(replace(each, name=user.spec.email))
    return found


def role_of(members: Sequence[Member], user: str, groups: Iterable[str], environment: str) -> str:
    """The highest role that a user has in a cluster of this environment; '' if none."""
    belongs = {("User", user), *(("Group", each) for each in groups)}
    roles = [
        each.role for each in members if (each.kind, each.name) in belongs and each.environment in ("", environment)
    ]
    return max(roles, key=lambda role: _ORDER.get(role, 0), default="")
