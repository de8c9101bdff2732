"""Which of the versions on offer is meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.helm.errors import SourceError
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.sprig.semver import parse, satisfies
from homeport.machinery.reading import reads


def choose_version(offered: Iterable[str], wanted: str, where: str) -> str:
    """The version itself if it is offered, otherwise the newest that is in the range. Empty: the newest release.

    As with Helm, pre-releases are chosen only by a range that names one, such as `>=1.0.0-0`.
    """
    known = [text for text in offered if _is_version(text)]
    if wanted in known:
        return wanted
    bare = wanted.removeprefix("v")
    for text in known:
        if bare and text.removeprefix("v") == bare:
            return text
    try:
        fitting = [text for text in known if satisfies(wanted or "*", text)]
    except CallError as error:
        raise SourceError(f"{where}: version {wanted!r} is neither a version nor a range: {error}") from None
    if fitting:
        return max(fitting, key=_order)
    newest = sorted(known, key=_order, reverse=True)[:5]
    offer = f"the newest on offer are {', '.join(newest)}" if newest else "no version is on offer"
    raise SourceError(f"{where}: no version matches {wanted or '*'!r}; {offer}")


def _is_version(text: str) -> bool:
    return reads(parse, text, CallError)


def _order(text: str) -> Any:
    return parse(text).key
