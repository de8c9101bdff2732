"""The repeatable functions of sprig, which templates of ClusterClasses may use."""

from __future__ import annotations

from typing import Final

from homeport.machinery.gotemplate.function import Function
from homeport.machinery.gotemplate.sprig import (
    arithmetic,
    casing,
    choice,
    encoding,
    mapping,
    path,
    reflection,
    regex,
    semver,
    sequence,
    text,
)

SPRIG: Final[dict[str, Function]] = {
    **text.FUNCTIONS,
    **casing.FUNCTIONS,
    **choice.FUNCTIONS,
    **arithmetic.FUNCTIONS,
    **sequence.FUNCTIONS,
    **mapping.FUNCTIONS,
    **encoding.FUNCTIONS,
    **reflection.FUNCTIONS,
    **regex.FUNCTIONS,
    **semver.FUNCTIONS,
    **path.FUNCTIONS,
}
