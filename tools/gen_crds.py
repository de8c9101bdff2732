"""Writes config/crds/: the CustomResourceDefinitions of our kinds, one file each, made from the types; and all in one.
The files are for clusters of others, where nothing converts: they serve the stored version alone.
Beside it what clusterctl is to believe of a cluster that runs our controllers: config/clusterctl/providers.yaml.

With --check nothing is written; the exit code says whether the files are what would be.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import orjson
import yaml

from homeport.app.components import COMPONENTS
from homeport.capi.definition.inventory import NAMESPACE, render_provider
from homeport.capi.definition.stored import stored_alone

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "config/crds"
INVENTORY = ROOT / "config/clusterctl/providers.yaml"
# The same for the program itself, which should not have to make them at every start.
PACKED = ROOT / "src/homeport/app/definitions.json"


class _Plain(yaml.CSafeDumper):
    """Anchors would spare lines and confuse readers."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def definitions() -> list[dict[str, Any]]:
    return [dict(each) for component in COMPONENTS for each in component.definitions()]


def pack() -> bytes:
    found = {component.name: list(component.definitions()) for component in COMPONENTS}
    return orjson.dumps(found, option=orjson.OPT_APPEND_NEWLINE)


def render() -> dict[str, str]:
    """File name > content."""
    files = {}
    for crd in map(stored_alone, definitions()):
        name = f"{crd['spec']['group']}_{crd['spec']['names']['plural']}.yaml"
        files[name] = "---\n" + yaml.dump(crd, Dumper=_Plain, sort_keys=False, width=120, allow_unicode=True)
    return files


def inventory() -> str:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    objects = [namespace, *(render_provider(each) for component in COMPONENTS for each in component.inventory)]
    return yaml.dump_all(objects, Dumper=_Plain, sort_keys=False, explicit_start=True)


def stale(files: dict[str, str], folder: Path = FOLDER) -> list[str]:
    """Names of files that differ, are missing, or should not be there."""
    there = {path.name: path.read_text() for path in folder.glob("*.yaml")}
    return sorted(name for name in files.keys() | there.keys() if files.get(name) != there.get(name))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    files = render()
    names = stale(files)
    packed = pack()
    if not PACKED.exists() or PACKED.read_bytes() != packed:
        names.append(PACKED.name)
    if not INVENTORY.exists() or INVENTORY.read_text() != inventory():
        names.append(INVENTORY.name)
    if check:
        print(
            f"config/crds differs from the types: {', '.join(names)}: run make gen"
            if names
            else "config/crds is up to date"
        )
        return 1 if names else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    INVENTORY.parent.mkdir(parents=True, exist_ok=True)
    INVENTORY.write_text(inventory())
    PACKED.write_bytes(packed)
    for name in names:
        if name in (PACKED.name, INVENTORY.name):
            continue
        if name in files:
            (FOLDER / name).write_text(files[name])
        else:
            (FOLDER / name).unlink()
    print(f"wrote {len(names)} of {len(files)} files of config/crds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
