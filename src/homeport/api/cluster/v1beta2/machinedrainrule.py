"""MachineDrainRule: how Pods of some Machines are drained."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import LabelSelector, NonEmpty
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, ListType, Required, Rule, Size


class MachineDrainRuleDrainConfig(Model):
    """What is done with the Pods, and in which order."""

    behavior: Required[Annotated[str, Enum(("Drain", "Skip", "WaitCompleted"))]] = ""
    order: int | None = None


class MachineDrainRuleMachineSelector(NonEmpty):
    """Machines by their labels and those of their Clusters."""

    cluster_selector: LabelSelector = {}
    selector: LabelSelector = {}


class MachineDrainRulePodSelector(NonEmpty):
    """Pods by their labels and those of their namespaces."""

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


@resource("cluster.x-k8s.io", "v1beta2", "MachineDrainRule", "machinedrainrules")
class MachineDrainRule(Object):
    """A MachineDrainRule controls how Pods are handled when their Node is drained."""

    spec: Required[MachineDrainRuleSpec] = msgspec.field(default_factory=MachineDrainRuleSpec)
