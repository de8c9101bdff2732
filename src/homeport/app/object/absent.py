"""Messages about objects that do not exist, with the names that a user may have meant. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from homeport.api.meta import Unstructured
from homeport.infra.preflight.near import near_only

_ABSENT = re.compile(r"\b([A-Z]\w+) ([a-z0-9.-]*[a-z0-9]) does not exist\b(?: yet)?(?! yet|; did you mean)")


def with_near(message: str, namespace: str, objects: Iterable[Unstructured]) -> str:
    """`Kind name does not exist` is followed by similar names of the namespace. Other messages stay as they are.

    Controllers do not search for them: that would cost a list of all objects for each reference that comes too early.
    """
    found = _ABSENT.search(message)
    if found is None:
        return message
    kind, name = found.groups()
    names = [each.name for each in objects if each.get("kind") == kind and each.namespace == namespace]
    return f"{message[: found.end()]}{near_only(name, names)}{message[found.end() :]}"
