"""MachineDrainRule: how Pods of some Machines are drained."""

from __future__ import annotations

import msgspec

from homeport.api.cluster.v1beta2.machinedrainrule import (
    MachineDrainRuleSpec,
)
from homeport.api.meta import Object, resource
from homeport.api.schema import Required


@resource("cluster.x-k8s.io", "v1beta1", "MachineDrainRule", "machinedrainrules")
class MachineDrainRule(Object):
    """A MachineDrainRule controls how Pods are handled when their Node is drained."""

    spec: Required[MachineDrainRuleSpec] = msgspec.field(default_factory=MachineDrainRuleSpec)
