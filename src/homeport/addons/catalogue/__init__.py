"""The add-ons that Homeport knows: where their charts come from, which versions, and the values that clusters need."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping
from importlib import resources

import msgspec

from homeport.addons.catalogue.entry import Entry
from homeport.machinery import yaml

__all__ = ["Entry", "catalogue", "entries_before", "near_match"]


@functools.cache
def catalogue() -> Mapping[str, Entry]:
    found = {}
    for path in sorted(resources.files(__name__).iterdir(), key=lambda each: each.name):
        if path.name.endswith(".yaml"):
            entry = msgspec.convert(yaml.load(path.read_text(), path.name), Entry)
            found[entry.name] = entry
    return found


def near_match(name: str) -> str:
    """The name of the catalogue that was probably meant; '' if none comes near."""
    close = difflib.get_close_matches(name, [*catalogue()], n=1, cutoff=0.5)
    return close[0] if close else ""


@functools.cache
def entries_before(name: str) -> frozenset[str]:
    """The add-ons that are installed before this one, if a Cluster has them."""
    entry = catalogue().get(name)
    if entry is None:
        return frozenset()
    return frozenset(each.name for each in catalogue().values() if each.category in entry.after and each.name != name)
