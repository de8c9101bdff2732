"""Pools of v1alpha1: a subnet, or its first and last address, becomes a range among the addresses of v1alpha2."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

from homeport.api.ipam import v1alpha1, v1alpha2
from homeport.capi.conversion.codec import Context
from homeport.capi.conversion.registration import register_conversions
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]


class Subnet:
    """The way back needs no rule: addresses are addresses in either version, and what was written is remembered."""

    def up(self, obj: Json, context: Context) -> None:
        spec = obj.get("spec") or {}
        subnet, start, end = (spec.pop(field, "") for field in ("subnet", "start", "end"))
        if subnet:
            try:
                network = ip_network(subnet.strip(), strict=False)
            except ValueError:
                spec["addresses"] = [*(spec.get("addresses") or ()), subnet]  # for the validation to refuse
                return
            # The first address names the network and the last is for broadcasts.
            start = start or str(network.network_address + 1)
            end = end or str(network.broadcast_address - 1)
            spec["prefix"] = spec.get("prefix") or network.prefixlen
        if start and end:
            spec["addresses"] = [*(spec.get("addresses") or ()), f"{start}-{end}"]

    def down(self, obj: Json, context: Context) -> None:
        """Nothing to do."""


KINDS = (
    (v1alpha1.InClusterIPPool, v1alpha2.InClusterIPPool),
    (v1alpha1.GlobalInClusterIPPool, v1alpha2.GlobalInClusterIPPool),
)


def register(hooks: Hooks) -> None:
    register_conversions(hooks, [(versions, [Subnet()]) for versions in KINDS])
