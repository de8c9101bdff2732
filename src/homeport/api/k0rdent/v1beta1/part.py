"""Parts that several kinds of k0rdent share.

The schemas have no defaults but one: the API server would write them into the stored object, where they could no longer
be told from what the user wrote. Readers fill defaults in.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from homeport.api.core import v1 as core
from homeport.api.field import Conditions, Long
from homeport.api.meta import Model
from homeport.api.schema import Atomic, ListType, Pattern, Preserve, Required, Rule, Size

GROUP = "k0rdent.mirantis.com"
VERSION = "v1beta1"

Text = Annotated[str, Size(1, 253)]
Values = Annotated[dict[str, Any], Preserve()]
Block = Annotated[dict[str, Any], Preserve()]
Interval = Annotated[str, Pattern(r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$")]
Strings = list[str]
AtomicStrings = Annotated[list[str], ListType("atomic")]

IMMUTABLE = Rule("self == oldSelf", "immutable: create another object instead")


def fixed_once_set(what: str) -> Rule:
    return Rule("oldSelf == '' || self == oldSelf", f"{what} is immutable once it is set")


class ObjectReference(core.ObjectReference):
    """An object of any kind."""


class SecretKeyRef(Model):
    """A key of a Secret."""

    __schema__ = (Atomic(),)

    key: Required[Annotated[str, Size(1)]] = ""
    name: str = ""
    namespace: str = ""


class NameRef(Model):
    """An object of the same namespace, by its name."""

    name: Required[str] = ""


class Reported(Model):
    """Status of a kind that is stored and not acted on."""

    conditions: Conditions = []
    observed_generation: Long = 0


class Component(Model):
    """A component of the management plane: a template, and values for it."""

    template: str = ""
    config: Values = {}


class Core(Model):
    """Components that every management plane has."""

    kcm: Component | None = None
    capi: Component | None = None


class Provider(Model):
    """A provider of the management plane."""

    name: Required[str] = ""
    template: str = ""
    config: Values = {}


class ComponentStatus(Model):
    """State of one component."""

    template: str = ""
    error: str = ""
    exposed_providers: Strings = []
    success: bool = False


class PlaneStatus(Model):
    """What a management plane offers."""

    available_providers: Strings = []
    capi_contracts: dict[str, dict[str, str]] = {}
    components: dict[str, ComponentStatus] = {}
    conditions: Conditions = []
    observed_generation: Long = 0


def named(default: Any, name: str) -> Any:
    """A field whose wire name has capitals that camel case does not give."""
    return msgspec.field(default=default, name=name)
