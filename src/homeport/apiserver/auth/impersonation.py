"""Acting as somebody else: the Impersonate-* headers, each allowed by the RBAC verb `impersonate`."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote

from homeport.apiserver.auth.authn import AUTHENTICATED
from homeport.apiserver.auth.decision import Attributes, forbidden
from homeport.apiserver.auth.rbac.rbac import Rbac
from homeport.apiserver.auth.token.serviceaccount import groups_of, split_user_name
from homeport.apiserver.request import ANONYMOUS, User
from homeport.client.errors import BadRequest

USER, GROUP, UID = "impersonate-user", "impersonate-group", "impersonate-uid"
EXTRA = "impersonate-extra-"
UNAUTHENTICATED = "system:unauthenticated"
_AUTHENTICATION = "authentication.k8s.io"


def impersonate(user: User, headers: Iterable[tuple[str, str]], rbac: Rbac) -> User:
    """The user whom the headers (name, value) name, or `user` if they name none. Raises Forbidden or BadRequest."""
    wanted = [(name.lower(), value) for name, value in headers if name[:12].lower() == "impersonate-"]
    if not wanted:
        return user
    name = next((value for header, value in wanted if header == USER), "")
    groups = tuple(value for header, value in wanted if header == GROUP)
    uid = next((value for header, value in wanted if header == UID), "")
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in wanted:
        if header.startswith(EXTRA):
            key = unquote(header[len(EXTRA) :])
            extra[key] = (*extra.get(key, ()), value)
    if not name:
        if groups or uid or extra:
            raise BadRequest("requested to impersonate a group, uid or extra without impersonating a user")
        return user
    for asked in _questions(user, name, groups, uid, extra):
        decision = rbac.authorize(asked)
        if not decision.allowed:
            raise forbidden(asked, decision.reason)
    return User(name, _groups(name, groups), uid, extra)


def _questions(
    user: User, name: str, groups: tuple[str, ...], uid: str, extra: dict[str, tuple[str, ...]]
) -> Iterable[Attributes]:
    account = split_user_name(name)
    if account is not None:
        yield Attributes(user, "impersonate", "", "v1", "serviceaccounts", "", account[0], account[1])
    else:
        yield Attributes(user, "impersonate", "", "v1", "users", name=name)
    for group in groups:
        yield Attributes(user, "impersonate", "", "v1", "groups", name=group)
    for key, values in extra.items():
        for value in values:
            yield Attributes(user, "impersonate", _AUTHENTICATION, "v1", "userextras", key, name=value)
    if uid:
        yield Attributes(user, "impersonate", _AUTHENTICATION, "v1", "uids", name=uid)


def _groups(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    account = split_user_name(name)
    if account is not None and not groups:
        groups = groups_of(account[0])
    if UNAUTHENTICATED in groups:
        return groups
    if name == ANONYMOUS.name:
        return (*groups, UNAUTHENTICATED)
    return groups if AUTHENTICATED in groups else (*groups, AUTHENTICATED)
