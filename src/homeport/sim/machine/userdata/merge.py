"""How cloud-init puts several cloud-configs together."""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]
Options = dict[str, frozenset[str]]

# Later parts replace keys of earlier ones unless they ask for something else.
_DEFAULT: Options = {"dict": frozenset({"replace"}), "list": frozenset(), "str": frozenset()}
_WORD = re.compile(r"(dict|list|str)\(([^)]*)\)")


def merged(before: Json, after: Json, how: object = "") -> Json:
    """`how`: `list(append)+dict(recurse_array,no_replace)+str()`, or a list of {name, settings}."""
    return _dicts(before, after, _options(how))


def _options(how: Any) -> Options:
    if isinstance(how, list):
        given = {str(each.get("name")): frozenset(map(str, each.get("settings") or ())) for each in how}
        return {**_DEFAULT, **given} if given else _DEFAULT
    words = _WORD.findall(str(how or ""))
    if not words:
        return _DEFAULT
    given = {name: frozenset(each.strip() for each in settings.split(",") if each.strip()) for name, settings in words}
    return {"dict": frozenset(), "list": frozenset(), "str": frozenset(), **given}


def _value(before: Any, after: Any, options: Options) -> Any:
    """Two values of one key, where the dict's options ask to look inside; the earlier one stays if nothing is said."""
    if isinstance(before, dict) and isinstance(after, dict):
        return _dicts(before, after, options)
    if isinstance(before, list) and isinstance(after, list):
        return _lists(before, after, options)
    if isinstance(before, str) and isinstance(after, str) and "append" in options["str"]:
        return before + after
    return after if "replace" in options["dict"] else before


def _dicts(before: Json, after: Json, options: Options) -> Json:
    found = dict(before)
    settings = options["dict"]
    for key, value in after.items():
        if key not in found:
            found[key] = value
        elif value is None and "allow_delete" in settings:
            del found[key]
        elif "replace" in settings:
            found[key] = value
        else:
            found[key] = _value(found[key], value, options)
    return found


def _lists(before: list[Any], after: list[Any], options: Options) -> list[Any]:
    settings = options["list"]
    if "append" in settings:
        return before + after
    if "prepend" in settings:
        return after + before
    if "replace" in settings or "replace" in options["dict"]:
        return after
    return before
