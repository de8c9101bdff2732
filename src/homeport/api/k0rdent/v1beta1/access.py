"""AccessManagement: which namespaces may use templates and credentials of the system namespace."""

from __future__ import annotations

import msgspec

from homeport.api.field import LabelSelector, Long
from homeport.api.k0rdent.v1beta1.part import GROUP, VERSION, Strings
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Required, Rule


def at_most_one(*names: str) -> tuple[Rule, ...]:
    count = " + ".join(f"(has(self.{each}) ? 1 : 0)" for each in names)
    return (Rule(f"({count}) <= 1", f"set at most one of {', '.join(names)}"),)


class TargetNamespaces(Model):
    """Namespaces that get the objects. All of them if nothing is set."""

    __schema__ = at_most_one("list", "selector", "stringSelector")

    list: Strings = []
    selector: LabelSelector | None = None
    string_selector: str = ""


class AccessResource(Model):
    """Objects of the system namespace. All of the kind if neither names nor a selector is set."""

    __schema__ = at_most_one("names", "selector", "stringSelector")

    api_group: str = ""
    kind: Required[str] = ""
    names: Strings = []
    selector: LabelSelector | None = None
    string_selector: str = ""


class AccessRule(Model):
    """Objects, and the namespaces that get copies of them."""

    target_namespaces: TargetNamespaces = msgspec.field(default_factory=TargetNamespaces)
    resources: list[AccessResource] = []
    cluster_template_chains: Strings = []
    service_template_chains: Strings = []
    credentials: Strings = []
    cluster_authentications: Strings = []
    data_sources: Strings = []
    cluster_audit_policies: Strings = []


class AccessManagementSpec(Model):
    """Which namespaces get which objects of kcm-system."""

    access_rules: list[AccessRule] = []


class ResourceOutcome(Model):
    """A kind of objects that could not be copied."""

    api_group: str = ""
    kind: str = ""
    error: str = ""


class AccessManagementStatus(Model):
    """The rules that hold."""

    current: list[AccessRule] = []
    error: str = ""
    resources: list[ResourceOutcome] = []
    observed_generation: Long = 0


@resource(GROUP, VERSION, "AccessManagement", "accessmanagements", namespaced=False)
class AccessManagement(Object):
    """An AccessManagement copies templates and credentials into namespaces. The only one is named kcm."""

    spec: AccessManagementSpec = msgspec.field(default_factory=AccessManagementSpec)
    status: AccessManagementStatus = msgspec.field(default_factory=AccessManagementStatus)
