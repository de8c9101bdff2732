"""MachineDrainRule: how Pods of some Machines are drained."""

from __future__ import annotations

from homeport.api.cluster import v1beta2
from homeport.api.version import older

MachineDrainRule = older(v1beta2.MachineDrainRule, "v1beta1", {})
