"""Values that are merged at random: of a chart, its subchart, the subchart below, and of a user."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).resolve().parent / "merges.json"
COUNT = 60
_KEYS = ("a", "b", "c", "global", "kid")
_TEMPLATE = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  v: {{{{ toJson .Values | quote }}}}\n"


def value(chance: random.Random, depth: int) -> Any:
    kind = chance.random()
    if kind < 0.45 and depth:
        return {key: value(chance, depth - 1) for key in _KEYS[:3] if chance.random() < 0.7}
    if kind < 0.65:
        return None
    return chance.choice([1, "text", True, [1, None], "", 0, {}])


def values(chance: random.Random, below: str) -> dict[str, Any]:
    made = {key: value(chance, 2) for key in _KEYS[:3] if chance.random() < 0.8}
    for key in ("global", below):
        if key and chance.random() < 0.6:
            made[key] = {name: value(chance, 2) for name in _KEYS[:3] if chance.random() < 0.8}
    return made


def case(number: int) -> dict[str, Any]:
    """Values by level: parent, kid, grandkid and user."""
    chance = random.Random(number)
    made = {"parent": values(chance, "kid"), "kid": values(chance, "grandkid"), "grandkid": values(chance, "")}
    made["user"] = values(chance, "kid")
    if isinstance(made["user"].get("kid"), dict) and chance.random() < 0.5:
        made["user"]["kid"]["grandkid"] = {name: value(chance, 1) for name in _KEYS[:3]}
    return made


def chart_files(number: int) -> dict[str, bytes]:
    given = case(number)
    files: dict[str, bytes] = {}
    for name, folder in (("parent", ""), ("kid", "charts/kid/"), ("grandkid", "charts/kid/charts/grandkid/")):
        # With dependencies, values are merged once more, for import-values.
        below = {"parent": "kid", "kid": "grandkid"}.get(name)
        needs = f"dependencies:\n- {{name: {below}, version: 1.x}}\n" if below and number % 2 else ""
        files[f"{folder}Chart.yaml"] = f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n{needs}".encode()
        files[f"{folder}values.yaml"] = json.dumps(given[name]).encode()
        files[f"{folder}templates/v.yaml"] = _TEMPLATE.format(name=name).encode()
    return files
