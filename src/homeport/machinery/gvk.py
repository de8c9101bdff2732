"""Group, version and kind, and the strings that carry them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_KUBE_VERSION = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STAGES = {None: 2, "beta": 1, "alpha": 0}


class GroupVersion(NamedTuple):
    group: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


@lru_cache(maxsize=1024)
def parse_api_version(text: str) -> GroupVersion:
    """`apps/v1` and `v1` taken apart. The core group is the empty one."""
    group, slash, version = text.rpartition("/")
    if "/" in group or (slash and not group) or not version:
        raise ValueError(f"unexpected GroupVersion string: {text}")
    return GroupVersion(group, version)


def version_order(version: str) -> tuple[int, int, int, int, str]:
    """A sort key: v2, v1, v1beta2, v1beta1, v1alpha1, then everything else by name. The best comes first."""
    found = _KUBE_VERSION.fullmatch(version)
    if found is None:
        return (1, 0, 0, 0, version)
    return (0, -_STAGES[found[2]], -int(found[1]), -int(found[3] or 0), "")
