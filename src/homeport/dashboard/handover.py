"""How `homeport dashboard` hands over who the caller is: the credential of their kubeconfig, which is checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from homeport.api.meta import Resource
from homeport.client.config import Config, Impersonation
from homeport.client.credential import Certificate, Static
from homeport.client.http import HttpClient

_REVIEW = Resource("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)


class HandOver(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the caller's kubeconfig proves them with, as it is sent to the server of the page."""

    authorization: str = ""
    certificate: str = ""
    key: str = ""
    namespace: str = ""
    act_as: str = ""  # a kubeconfig may say that its user acts as somebody else; the API server checks whether they may
    act_as_uid: str = ""
    act_as_groups: tuple[str, ...] = ()
    act_as_extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __repr__(self) -> str:
        return "HandOver(...)"


async def read(config: Config) -> HandOver:
    """The credential in use now; plug-ins are run. Raises ApiError if there is none."""
    header = await config.credential.header()
    cert = config.credential.certificate()
    other = config.impersonate
    return HandOver(
        header,
        "" if cert is None else cert.cert.decode(),
        "" if cert is None else cert.key.decode(),
        config.namespace,
        other.user,
        other.uid,
        other.groups,
        other.extra,
    )


def config_of(base: Config, given: HandOver) -> Config:
    """`base` says where the API server is; who asks is the caller alone."""
    cert = Certificate(given.certificate.encode(), given.key.encode()) if given.certificate else None
    return replace(
        base,
        credential=Static(given.authorization, cert),
        namespace=given.namespace or "default",
        impersonate=Impersonation(given.act_as, given.act_as_uid, given.act_as_groups, given.act_as_extra),
    )


async def user_of(config: Config) -> str:
    """As the API server knows the credential. Raises ApiError: it is not valid."""
    async with HttpClient(config) as client:
        body: dict[str, Any] = {"apiVersion": _REVIEW.api_version, "kind": _REVIEW.kind}
        answer = await client.create(body, kind=_REVIEW)
    info = (answer.get("status") or {}).get("userInfo") or {}
    return str(info.get("username") or "")
