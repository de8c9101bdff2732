"""Writes src/homeport/sim/harvester/definition/definitions.json from a folder of CustomResourceDefinitions.

    .venv/bin/python tools/gen_harvester.py FOLDER

Only facts are kept: names, scopes, versions, columns, subresources and schemas; all descriptions are removed. Subtrees
that occur more than once, as the specification of a VM in VirtualMachine and VirtualMachineInstance, are written once.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

TARGET = Path(__file__).parent.parent / "src/homeport/sim/harvester/definition/definitions.json"
KINDS = (
    "datavolumes.cdi.kubevirt.io",
    "virtualmachines.kubevirt.io",
    "virtualmachineinstances.kubevirt.io",
    "virtualmachineinstancemigrations.kubevirt.io",
    "virtualmachinesnapshots.snapshot.kubevirt.io",
    "virtualmachinerestores.snapshot.kubevirt.io",
    "keypairs.harvesterhci.io",
    "settings.harvesterhci.io",
    "virtualmachineimages.harvesterhci.io",
    "virtualmachinetemplates.harvesterhci.io",
    "virtualmachinetemplateversions.harvesterhci.io",
    "network-attachment-definitions.k8s.cni.cncf.io",
    "clusternetworks.network.harvesterhci.io",
    "vlanconfigs.network.harvesterhci.io",
    "vlanstatuses.network.harvesterhci.io",
    "ippools.loadbalancer.harvesterhci.io",
    "loadbalancers.loadbalancer.harvesterhci.io",
)
REFERENCE = "$shared"
SHORTEST = 120  # characters; anything smaller is not worth a reference


def bare(schema: Any, *, names: bool = False) -> Any:
    """Without descriptions. `names`: the keys are names of fields, and one may be called description."""
    if isinstance(schema, list):
        return [bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: bare(value, names=not names and key in ("properties", "patternProperties"))
        for key, value in schema.items()
        if names or key != "description" or isinstance(value, dict)
    }


def definition(raw: dict[str, Any]) -> dict[str, Any]:
    spec = raw["spec"]
    kept = {key: spec[key] for key in ("group", "names", "scope")}
    kept["versions"] = [bare(each) for each in spec["versions"]]
    return {
        "apiVersion": raw["apiVersion"],
        "kind": raw["kind"],
        "metadata": {"name": raw["metadata"]["name"]},
        "spec": kept,
    }


def text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def count(value: Any, found: Counter[str]) -> None:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if isinstance(value, dict) and len(spelled := text(value)) >= SHORTEST:
        found[spelled] += 1
        if found[spelled] > 1:
            return  # its parts are in the first one
    for child in children:
        count(child, found)


class Sharing:
    def __init__(self, found: Counter[str]) -> None:
        self._repeated = {spelled for spelled, times in found.items() if times > 1}
        self._places: dict[str, int] = {}
        self.shared: list[Any] = []

    def pack(self, value: Any) -> Any:
        """Parts come before the whole, so that a reader can resolve references in one go."""
        if isinstance(value, list):
            return [self.pack(each) for each in value]
        if not isinstance(value, dict):
            return value
        spelled = text(value)
        if spelled in self._places:
            return {REFERENCE: self._places[spelled]}
        packed = {key: self.pack(each) for key, each in value.items()}
        if spelled not in self._repeated:
            return packed
        self._places[spelled] = len(self.shared)
        self.shared.append(packed)
        return {REFERENCE: self._places[spelled]}


def main(folder: Path) -> None:
    known: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.yaml")):
        for raw in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if raw and raw.get("kind") == "CustomResourceDefinition":
                known[raw["metadata"]["name"]] = definition(raw)
    missing = [name for name in KINDS if name not in known]
    if missing:
        sys.exit(f"{folder}: no CustomResourceDefinition of {', '.join(missing)}")
    chosen = [known[name] for name in KINDS]
    found: Counter[str] = Counter()
    count(chosen, found)
    sharing = Sharing(found)
    packed = [sharing.pack(each) for each in chosen]
    TARGET.write_text(text({"shared": sharing.shared, "definitions": packed}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: gen_harvester.py FOLDER")
    main(Path(sys.argv[1]))
