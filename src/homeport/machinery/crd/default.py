"""What the server adds to a definition."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def default(crd: Json) -> None:
    """Fills in names and conversion, in place."""
    spec = crd.get("spec")
    if not isinstance(spec, dict):
        return
    names = spec.get("names")
    if isinstance(names, dict) and names.get("kind"):
        if not names.get("singular"):
            names["singular"] = str(names["kind"]).lower()
        if not names.get("listKind"):
            names["listKind"] = f"{names['kind']}List"
    conversion = spec.setdefault("conversion", {"strategy": "None"})
    webhook = conversion.get("webhook") if isinstance(conversion, dict) else None
    service = ((webhook or {}).get("clientConfig") or {}).get("service")
    if isinstance(service, dict):
        service.setdefault("port", 443)


def remember_storage_version(crd: Json) -> None:
    """Adds the storage version to those that objects may be stored in."""
    stored = crd.setdefault("status", {}).setdefault("storedVersions", [])
    for version in crd["spec"].get("versions") or ():
        if version.get("storage"):
            if version["name"] not in stored:
                stored.append(version["name"])
            return
