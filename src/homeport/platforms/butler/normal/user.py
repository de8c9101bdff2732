"""User and IdentityProvider."""

from __future__ import annotations

import re
from dataclasses import dataclass

from homeport.api.butler.v1alpha1 import IdentityProvider, User
from homeport.platforms.butler.normal.outcome import Normal, Reading

_EMAIL = re.compile(r"[^@\s:]+@[^@\s:]+")


@dataclass(frozen=True, slots=True)
class UserModel:
    email: str  # the name of the user for the API server, too
    disabled: bool
    platform_role: str  # admin, viewer or ''
    internal: bool


def normal_user(user: User) -> Normal[UserModel]:
    reading, spec = Reading(), user.spec
    if not _EMAIL.fullmatch(spec.email):
        reading.fault("spec.email", f'"{spec.email}" is not an e-mail address: write for example ada@example.com')
    if spec.is_platform_admin and spec.platform_role not in (None, "admin"):
        reading.fault(
            "spec.isPlatformAdmin",
            f'true contradicts spec.platformRole ("{spec.platform_role}"): set only platformRole',
        )
    if spec.is_platform_admin is False and spec.platform_role == "admin":
        reading.fault("spec.isPlatformAdmin", 'false contradicts spec.platformRole ("admin"): set only platformRole')
    if spec.is_platform_admin:
        reading.warn("spec.isPlatformAdmin is deprecated: set platformRole: admin")
    role = spec.platform_role or ("admin" if spec.is_platform_admin else "")
    if spec.auth_type == "sso" and not spec.sso_provider:
        reading.warn("spec.ssoProvider: a user of authType sso usually names an IdentityProvider")
    return reading.result(lambda: UserModel(spec.email, spec.disabled, role, spec.auth_type != "sso"))


@dataclass(frozen=True, slots=True)
class IdentityModel:
    issuer: str


def normal_identity_provider(provider: IdentityProvider) -> Normal[IdentityModel]:
    reading, oidc = Reading(), provider.spec.oidc
    if oidc is None:
        reading.missing("spec.oidc", "type oidc needs the settings of the OpenID Connect provider")
        return reading.result(lambda: IdentityModel(""))
    issuer = reading.either(("spec.oidc.issuerURL", oidc.issuer_url), ("spec.oidc.issuer", oidc.issuer)) or ""
    if not issuer:
        reading.missing("spec.oidc.issuerURL", "set the address of the issuer, for example https://login.example.com")
    return reading.result(lambda: IdentityModel(issuer))
