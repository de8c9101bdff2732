"""MachineDrainRule: how Pods leave the Nodes of machines that go. The Machine controller reads them."""

from __future__ import annotations

from homeport.core.drainrule.admission import register

__all__ = ["register"]
