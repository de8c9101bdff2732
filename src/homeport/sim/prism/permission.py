"""What a request does to what, in two words, for users who may not do everything: `create vms`, `view tasks`."""

from __future__ import annotations

from typing import Final

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "update", "DELETE": "delete"}
# What everybody may ask: which versions there are, and who he is.
_FREE: Final = ("/unversioned/info", "/users/me")
_SUFFIXES: Final = ("list", "poll", "query")  # ways of v3 to read


def permission_of(method: str, template: str, *, reads: bool) -> str:
    """Of a route; '' for what everybody may do. Actions are verbs of their own: `power-on vms`."""
    if template.endswith(_FREE):
        return ""
    path, _, action = template.partition("/$actions/")
    named = [each for each in path.split("/") if not each.startswith("{") and each not in _SUFFIXES]
    what = "categories" if named[-1] == "category" else named[-1]
    return f"{action or ('view' if reads else _VERBS.get(method, 'view'))} {what}"
