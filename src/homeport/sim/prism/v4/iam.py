"""iam: users. No published v4 namespace has projects yet; they are in v3."""

from __future__ import annotations

from typing import Any, Final

from homeport.sim.prism.entity import User
from homeport.sim.prism.site import Routes
from homeport.sim.prism.v4 import envelope
from homeport.sim.prism.v4.envelope import Dialect, Json
from homeport.sim.prism.v4.reading import readers

NS: Final = "iam.v4.authn"
USERS: Final = envelope.listing(
    f"{NS}.User",
    """additionalAttributes bucketsAccessKeys createdBy createdTime creationType description displayName emailId
        extId firstName idpId isForceResetPasswordEnabled lastLoginTime lastName lastUpdatedBy lastUpdatedTime links
        locale middleInitial region status tenantId userType username""",
)


def add_routes(routes: Routes) -> None:
    users = "/api/iam/{v}/authn/users"
    routes.add("GET", users, list_users, USERS.response_type)
    routes.add("GET", f"{users}/{{extId}}", get_user, f"{NS}.GetUserApiResponse", table="users")


def user_view(d: Dialect, user: User) -> Json:
    fields: dict[str, Any] = {
        "extId": user.ext_id,
        "username": user.name,
        "userType": "SERVICE_ACCOUNT" if user.service else "LOCAL",
        "displayName": user.display_name or user.name,
        "emailId": user.email or None,
        "status": "ACTIVE",
        "createdTime": envelope.time_text(user.created),
        "creationType": "PREDEFINED" if user.name == "admin" else "USERDEFINED",
    }
    return d.typed(f"{NS}.User", fields)


list_users, get_user = readers(lambda world: world.users, USERS, lambda site, d, each: user_view(d, each))
