"""What `kubectl explain` says of each field: what to write there, in which form, and what happens if it is left out.

Each API group has a table. Its keys are `Type.field` or, where the field means the same everywhere in the group, `field`.
"""

from __future__ import annotations

from collections.abc import Mapping

from homeport.api.description import (
    addon,
    addons,
    bootstrap,
    butler,
    cluster,
    controlplane,
    extension,
    flux,
    ipam,
    k0rdent,
    k0s,
    k0smotron,
    kubevirt,
    nutanix,
    remote,
    shared,
    steward,
)

# By the package that a type stands in.
_GROUPS: Mapping[str, Mapping[str, str]] = {
    "addon": addon.FIELDS,
    "addons": addons.FIELDS,
    "bootstrap": bootstrap.FIELDS,
    "butler": butler.FIELDS,
    "cluster": cluster.FIELDS,
    "clusterctl": extension.FIELDS,
    "controlplane": controlplane.FIELDS,
    "flux": flux.FIELDS,
    "ipam": ipam.FIELDS,
    "k0rdent": k0rdent.FIELDS,
    "k0s": k0s.FIELDS,
    "k0smotron": k0smotron.FIELDS,
    "kubevirt": kubevirt.FIELDS,
    "nutanix": nutanix.FIELDS,
    "remote": remote.FIELDS,
    "runtime": extension.FIELDS,
    "steward": steward.FIELDS,
    "kamaji": steward.FIELDS,
}


def describe(module: str, type_: str, field: str, inner: str = "") -> str:
    """Of a field of the type `type_` in `module`. `inner` describes the field's own type, if that has a description."""
    group = _GROUPS.get(module.removeprefix("homeport.api.").partition(".")[0], {})
    said = group.get(f"{type_}.{field}") or shared.FIELDS.get(f"{type_}.{field}") or group.get(field)
    return said or shared.FIELDS.get(field) or inner
