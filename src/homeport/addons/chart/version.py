"""Versions of charts: which one a spec means, and which steps lead to it. Pure functions."""

from __future__ import annotations

import re

from homeport.addons.catalogue.entry import Entry

_NUMBER = r"(0|[1-9][0-9]*)"
_VERSION = re.compile(rf"^v?{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$")
_WILD = re.compile(rf"^v?{_NUMBER}(\.{_NUMBER}|\.[xX*])?(\.[xX*])?$")


class VersionError(ValueError):
    """A version that can't be used; says why and what to write."""


def is_exact(version: str) -> bool:
    return _VERSION.match(version) is not None


def parsed(version: str) -> tuple[int, int, int]:
    found = _VERSION.match(version)
    if found is None:
        raise VersionError(f'invalid version "{version}": expected for example 1.18.2')
    return int(found[1]), int(found[2]), int(found[3])


def chosen_version(wanted: str, entry: Entry | None, installed: str) -> str:
    """The version to install now. `installed`: what the cluster has, '' if nothing.

    On the way to a later minor version, an add-on that must not skip one goes through each of them.
    """
    target = _target(wanted, entry)
    if entry is None or not entry.one_minor_at_a_time or not installed or not is_exact(installed):
        return target
    return _step(entry, installed, target)


def _target(wanted: str, entry: Entry | None) -> str:
    if not wanted:
        if entry is None:
            raise VersionError("a chart that is not in the catalogue needs a version")
        return entry.newest
    if is_exact(wanted):
        return _as_listed(wanted, entry)
    if entry is None:
        return wanted  # a range: the repository knows its versions
    found = _matching(wanted, entry)
    if not found:
        raise VersionError(f"no version of add-on {entry.name} matches {wanted}: it has {', '.join(entry.versions)}")
    return found[0]


def _as_listed(wanted: str, entry: Entry | None) -> str:
    """Some projects write v1.2.3 and others 1.2.3; people mix them up."""
    listed = () if entry is None else entry.versions
    return next((each for each in listed if each.removeprefix("v") == wanted.removeprefix("v")), wanted)


def _matching(wanted: str, entry: Entry) -> list[str]:
    if _WILD.match(wanted) is None:
        raise VersionError(
            f'invalid version "{wanted}": expected for example {entry.newest}, or a range such as 1.18.x'
        )
    numbers = [int(each) for each in wanted.removeprefix("v").split(".") if each.isdigit()]
    return [each for each in entry.versions if list(parsed(each))[: len(numbers)] == numbers]


def _step(entry: Entry, installed: str, target: str) -> str:
    here, there = parsed(installed), parsed(target)
    if here[0] != there[0] or there[1] - here[1] <= 1:
        return target
    between = [each for each in entry.versions if parsed(each)[:2] == (here[0], here[1] + 1)]
    if not between:
        message = (
            f"add-on {entry.name} is upgraded one minor version at a time, and no version between {installed} and "
            f"{target} is in the catalogue: set a version of {here[0]}.{here[1] + 1} first"
        )
        raise VersionError(message)
    return max(between, key=parsed)


def is_listed(version: str, entry: Entry) -> bool:
    return not is_exact(version) or _as_listed(version, entry) in entry.versions
