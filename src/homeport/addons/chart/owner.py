"""Whose a release is. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.addons.name import ADDON_LABEL, label_value
from homeport.addons.target.object import Target
from homeport.helm.release.record import UNINSTALLED, Release


def release_owner(history: Sequence[Release]) -> str:
    """The add-on that the newest revision with such a label names: old versions of Helm drop labels."""
    return next((each.labels[ADDON_LABEL] for each in reversed(history) if ADDON_LABEL in each.labels), "")


def foreign_release(history: Sequence[Release], target: Target) -> str:
    """Why the add-on must leave a release of this history alone; '' if it need not."""
    if not history or history[-1].status == UNINSTALLED:
        return ""
    owner, rivals = release_owner(history), {label_value(each): each for each in target.rivals}
    if owner == label_value(target.addon.name) or (target.adopt and owner not in rivals):
        return ""
    where = f"release {history[-1].namespace}/{history[-1].name} already exists in the cluster and"
    if owner in rivals:
        return f"{where} belongs to ClusterAddon {rivals[owner]}: set spec.releaseName of one of the two"
    return (
        f"{where} does not belong to this add-on: uninstall it, set spec.releaseName, or set spec.conflictPolicy to "
        "Adopt"
    )
