"""MachineDrainRule: how Pods of some Machines are drained."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from homeport.api.field import LabelSelector
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, ListType, Mark, Required, Rule, Size


class MachineDrainRuleDrainConfig(Model):
    """What is done with the Pods, and in which order."""

    behavior: Required[Annotated[str, Enum(("Drain", "Skip", "WaitCompleted"))]] = ""
    order: int | None = None


class MachineDrainRuleMachineSelector(Model):
    """Machines by their labels and those of their Clusters."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    cluster_selector: LabelSelector = {}
    selector: LabelSelector = {}


class MachineDrainRulePodSelector(Model):
    """Pods by their labels and those of their namespaces."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    namespace_selector: LabelSelector = {}
    selector: LabelSelector = {}


class MachineDrainRuleSpec(Model):
    """Which Pods of which Machines, and what is done with them."""

    drain: Required[MachineDrainRuleDrainConfig] = msgspec.field(default_factory=MachineDrainRuleDrainConfig)
    machines: Annotated[
        list[MachineDrainRuleMachineSelector],
        Size(1, 32),
        ListType("atomic"),
        Rule("self.all(x, self.exists_one(y, x == y))", "each entry may be there once only"),
    ] = []
    pods: Annotated[
        list[MachineDrainRulePodSelector],
        Size(1, 32),
        ListType("atomic"),
        Rule("self.all(x, self.exists_one(y, x == y))", "each entry may be there once only"),
    ] = []


@resource("cluster.x-k8s.io", "v1beta1", "MachineDrainRule", "machinedrainrules")
class MachineDrainRule(Object):
    """A MachineDrainRule controls how Pods are handled when their Node is drained."""

    spec: Required[MachineDrainRuleSpec] = msgspec.field(default_factory=MachineDrainRuleSpec)
