"""What a user may have meant by a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from homeport.api.meta import Resource
from homeport.client.errors import ApiError
from homeport.client.protocol import Client, Key, Query


def near_only(wanted: str, names: Iterable[str]) -> str:
    """To be put behind an error: close matches alone, for names that not everybody may see."""
    close = difflib.get_close_matches(wanted, sorted(set(names)), n=2, cutoff=0.7)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def near(wanted: str, names: Iterable[str]) -> str:
    """To be put behind an error: close matches, otherwise some of the names that there are."""
    known = sorted(set(filter(None, names)))
    close = difflib.get_close_matches(wanted, known, n=3, cutoff=0.4)
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    if not known:
        return "; there are none"
    more = f" and {len(known) - 5} more" if len(known) > 5 else ""
    return f"; there are: {', '.join(map(repr, known[:5]))}{more}"


async def near_objects(client: Client, kind: Resource, key: Key) -> str:
    """Objects of the namespace with a similar name; nothing where the controllers may not list them."""
    try:
        found = (await client.list(kind, Query(namespace=key.namespace))).items
    except ApiError:
        return ""
    return near_only(key.name, [each.name for each in found])
