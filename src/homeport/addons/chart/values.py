"""Values of charts: parsed and merged. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.addons.problem import Problem
from homeport.machinery import yaml

Json = dict[str, Any]


def parse_values(text: str, field: str) -> Json:
    """Values of a chart. Raises Problem, which names the field."""
    try:
        found = yaml.load(text)
    except yaml.YamlError as error:
        raise Problem("InvalidValues", f"{field}: {error}", warning=True) from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Problem("InvalidValues", f"{field}: expected a map of values", warning=True)
    return found


def merged(below: Json, above: Mapping[str, Any]) -> Json:
    """Maps are merged, everything else is replaced; null stays, since it deletes a default of the chart."""
    made = dict(below)
    for key, value in above.items():
        known = made.get(key)
        made[key] = merged(known, value) if isinstance(known, dict) and isinstance(value, Mapping) else value
    return made
