"""Dynamic configuration: what running controllers of k0s follow is the ClusterConfig inside their cluster. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from homeport.machinery.patch import diff_merge, merge_patch

Json = dict[str, Any]

_HELM = ("repositories", "charts")


def follow(held: Mapping[str, Any], wanted: Mapping[str, Any]) -> Json | None:
    """The merge patch that makes `held` say what is `wanted`; None if it does.

    What the user does not write is k0s' own business, but for charts: those that are no longer written are uninstalled.
    """
    patch = copy.deepcopy(dict(wanted))
    given, running = (((each.get("extensions") or {}).get("helm") or {}) for each in (wanted, held))
    gone = {name: None for name in _HELM if running.get(name) and not given.get(name)}
    if gone:
        patch = merge_patch(patch, {"extensions": {"helm": {}}})
        patch["extensions"]["helm"] |= gone
    return patch if diff_merge(dict(held), merge_patch(dict(held), patch)) else None
