"""The claims that a VM asks Harvester to make, in an annotation."""

from __future__ import annotations

import orjson

from homeport.sim.harvester.kind import Json
from homeport.sim.harvester.object import notes

CLAIM_TEMPLATES = "harvesterhci.io/volumeClaimTemplates"


def claim_templates(vm: Json) -> list[Json]:
    """None if the annotation can't be read: admission refuses such VMs."""
    text = notes(vm).get(CLAIM_TEMPLATES, "")
    try:
        found = orjson.loads(text) if text else []
    except orjson.JSONDecodeError:
        return []
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def claim_names(vm: Json) -> list[str]:
    """Names of the claims that a VM (or its instance) uses."""
    spec = vm["spec"].get("template", {}).get("spec") or vm["spec"]
    found = []
    for volume in spec.get("volumes") or ():
        for kind, field in (("persistentVolumeClaim", "claimName"), ("dataVolume", "name")):
            if name := (volume.get(kind) or {}).get(field):
                found.append(str(name))
    return found
