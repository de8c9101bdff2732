"""Credential: the identity that clusters are made with."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions, Long
from homeport.api.k0rdent.v1beta1.part import GROUP, IMMUTABLE, VERSION, ObjectReference
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Required


class CredentialSpec(Model):
    """The identity, and where it may be used."""

    identity_ref: Required[ObjectReference] = msgspec.field(default_factory=ObjectReference)
    region: Annotated[str, IMMUTABLE] = ""
    description: str = ""


class CredentialStatus(Model):
    """Whether the identity can be used."""

    ready: bool = False
    conditions: Conditions = []
    observed_generation: Long = 0


@resource(GROUP, VERSION, "Credential", "credentials")
class Credential(Object):
    """A Credential names the Secret, or another identity, that clusters are made with."""

    spec: Required[CredentialSpec] = msgspec.field(default_factory=CredentialSpec)
    status: CredentialStatus = msgspec.field(default_factory=CredentialStatus)
