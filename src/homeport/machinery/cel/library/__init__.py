"""The functions that Kubernetes 1.37 offers to expressions."""

from __future__ import annotations

from typing import Final

from homeport.machinery.cel.library import (
    arithmetic,
    clock,
    convert,
    lists,
    named,
    net,
    optional,
    quantity,
    regex,
    semver,
    strings,
    url,
)
from homeport.machinery.cel.library.registry import Overload, table

FUNCTIONS: Final[dict[str, tuple[Overload, ...]]] = table(
    each
    for module in (
        arithmetic,
        convert,
        strings,
        clock,
        regex,
        lists,
        optional,
        url,
        net,
        quantity,
        semver,
        named,
    )
    for each in module.functions()
)

# namespaces of functions: `lists.range(3)` is a function, not the field of a variable called lists
NAMESPACES: Final = frozenset(name.partition(".")[0] for name in FUNCTIONS if "." in name[1:])
