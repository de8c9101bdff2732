"""Kinds of Nutanix' metro availability: two Prism Elements that hold the same data, of which one may fail."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.infrastructure import AnyConditions
from homeport.api.meta import Model, Object, resource
from homeport.api.nutanix.v1beta1 import GROUP, Category, Identifier, LocalRef
from homeport.api.schema import Atomic, Default, ListType, Loose, Needed, Pattern, Rule, Size

_FIXED = "self == oldSelf"

FixedRef = Annotated[LocalRef, Needed(), Atomic(), Rule(_FIXED, "can't be changed: create another object")]


class MetroSpec(Model):
    failure_domains: Annotated[
        list[LocalRef],
        Needed(),
        Size(2, 2),
        ListType("map", ("name",)),
        Rule(_FIXED, "can't be changed: create another NutanixMetro"),
    ] = []


class ConditionStatus(Model):
    conditions: AnyConditions = []


@resource(GROUP, "v1beta1", "NutanixMetro", "nutanixmetros")
class NutanixMetro(Object):
    """A NutanixMetro is a pair of failure domains that hold the same data."""

    spec: MetroSpec = msgspec.field(default_factory=MetroSpec)
    status: ConditionStatus = msgspec.field(default_factory=ConditionStatus)


class MetroSiteSpec(Model):
    preferred_failure_domain: FixedRef = msgspec.field(default_factory=LocalRef)
    metro_ref: FixedRef = msgspec.field(default_factory=LocalRef)
    group_name_label: str = ""


@resource(GROUP, "v1beta1", "NutanixMetroSite", "nutanixmetrosites")
class NutanixMetroSite(Object):
    """A NutanixMetroSite is one of the two sides of a NutanixMetro, which some machines prefer."""

    spec: MetroSiteSpec = msgspec.field(default_factory=MetroSiteSpec)
    status: ConditionStatus = msgspec.field(default_factory=ConditionStatus)


class CategoryRecoveryPlan(Model):
    category: Annotated[Category, Needed()] = msgspec.field(default_factory=Category)
    recovery_plan: Annotated[Identifier | None, Needed(), Loose()] = None
    failure_domain_ref: Annotated[LocalRef, Needed(), Atomic()] = msgspec.field(default_factory=LocalRef)


class MovementGroup(Model):
    name: Annotated[str, Needed(), Size(1, 64), Pattern("[a-z0-9]([-a-z0-9]*[a-z0-9])?")] = ""
    category_recovery_plans: Annotated[list[CategoryRecoveryPlan], Needed(), Size(2, 2), ListType("atomic")] = []


class VirtualHADomainSpec(Model):
    metro_ref: FixedRef = msgspec.field(default_factory=LocalRef)
    protection_policy: Annotated[Identifier | None, Loose()] = None
    movement_groups: Annotated[list[MovementGroup], ListType("map", ("name",))] = []


class VirtualHADomainStatus(Model):
    ready: Annotated[bool, Needed(), Default(False)] = False
    conditions: AnyConditions = []


@resource(GROUP, "v1beta1", "NutanixVirtualHADomain", "nutanixvirtualhadomains")
class NutanixVirtualHADomain(Object):
    """A NutanixVirtualHADomain lists machines that move together when one side of a NutanixMetro fails."""

    spec: VirtualHADomainSpec = msgspec.field(default_factory=VirtualHADomainSpec)
    status: VirtualHADomainStatus = msgspec.field(default_factory=VirtualHADomainStatus)
