"""User: membership in teams, and the role in the whole platform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homeport.api.butler.v1alpha1 import Team, User
from homeport.api.butler.v1alpha1.team import Membership
from homeport.platforms.butler.name import SYSTEM_NAMESPACE, USER_LABEL
from homeport.platforms.butler.normal.team import normal_team
from homeport.platforms.butler.normal.user import UserModel, normal_user
from homeport.platforms.butler.reconciler import ButlerReconciler
from homeport.platforms.butler.team.apply import keep
from homeport.platforms.butler.team.binding import platform_binding
from homeport.platforms.butler.team.member import role_of
from homeport.platforms.butler.team.role import (
    ADMIN,
    CLUSTER_ROLE_BINDING,
    ROLE_BINDING,
    SECRETS_ROLE,
    platform_role,
)
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

Json = dict[str, Any]


class UserScope(Scope[User]):
    model: UserModel


class UserReconciler(ButlerReconciler[User, UserScope]):
    controller_name = "butler-user"
    kind = User
    workers = 2

    def __init__(self, manager: Manager) -> None:
        super().__init__(manager)
        self._teams = manager.informers.get(Team).cache
        self.controller.map(Team, self.all_keys)

    def load(self, obj: User) -> UserScope | None:
        return UserScope(obj)

    def phases(self, scope: UserScope) -> Sequence[Phase[UserScope]]:
        # Bindings are owned by the User: they go with it.
        return [] if scope.deleting else [self._read, self._bind, self._find_teams]

    async def _read(self, scope: UserScope) -> Wait | None:
        status = scope.object.status
        status.observed_generation = scope.object.metadata.generation
        found = normal_user(scope.object)
        if found.model is None:
            return Wait("InvalidConfiguration", found.text, warning=True)
        scope.model = found.model
        status.phase = "Disabled" if found.model.disabled else "Active"
        return None

    async def _bind(self, scope: UserScope) -> Wait | None:
        """A disabled user has no role. Access to teams is taken away by the controller of Teams."""
        name, model = scope.object.metadata.name, scope.model
        wanted: list[Json] = []
        if model.platform_role and not model.disabled:
            role = platform_role(model.platform_role)
            wanted += _present(platform_binding(role, [model.email], f"butler-user-{name}"))
            if model.platform_role == ADMIN:
                secrets = platform_binding(SECRETS_ROLE, [model.email], f"butler-user-{name}", SYSTEM_NAMESPACE)
                wanted += _present(secrets)
        owner = {
            "apiVersion": User.__resource__.api_version,
            "kind": "User",
            "name": name,
            "uid": scope.object.metadata.uid,
        }
        for each in wanted:
            each["metadata"]["labels"][USER_LABEL] = name
            each["metadata"]["ownerReferences"] = [owner]
        await keep(self.client, wanted, f"{USER_LABEL}={name}", (CLUSTER_ROLE_BINDING, ROLE_BINDING))
        return None

    async def _find_teams(self, scope: UserScope) -> Wait | None:
        found = []
        for team in self._teams.list():
            model = normal_team(team).model
            members = [] if model is None else [each for each in model.members if not each.environment]
            names = (scope.model.email, scope.object.metadata.name)
            role = next((role for name in names if (role := role_of(members, name, (), ""))), "")
            if role:
                found.append(Membership(name=team.metadata.name, role=role))
        scope.object.status.teams = sorted(found, key=lambda each: each.name)
        if scope.model.disabled:
            return Wait(
                "Disabled", "the user is disabled and has no access: set spec.disabled to false to give it back"
            )
        return None


def _present(found: Json | None) -> list[Json]:
    return [] if found is None else [found]
