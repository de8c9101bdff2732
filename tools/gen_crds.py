"""Writes config/crds/: the CustomResourceDefinitions of our kinds, one file each, made from the types; and all in one.
The files are for clusters of others, where nothing converts: they serve the stored version alone.
Beside it what clusterctl is to believe of a cluster that runs our controllers: config/clusterctl/providers.yaml.

With --check nothing is written; the exit code says whether the files are what would be.
"""

from __future__ import annotations

import argparse
import copy
import sys
from pathlib import Path
from typing import Any

import orjson
import yaml

from homeport.app.components import COMPONENTS
from homeport.capi.definition.inventory import NAMESPACE, render_provider

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


def stored_alone(crd: dict[str, Any]) -> dict[str, Any]:
    """Without a conversion webhook kube-apiserver serves what it stores under every version's name: a read and a write
    in another version destroys the object. So there is only one."""
    spec = crd["spec"]
    stored = [version for version in spec["versions"] if version["storage"]]
    served = {version["name"] for version in stored}
    if spec["names"]["kind"] in _IMMUTABLE:
        stored = [_immutable(version) for version in stored]
    labels = {name: value for name, value in crd["metadata"].get("labels", {}).items() if _names(name, value, served)}
    metadata = {**crd["metadata"], **({"labels": labels} if labels else {})}
    return {**crd, "metadata": metadata, "spec": {**spec, "versions": stored}}


# Templates whose change our admission refuses. Where that is not asked, kube-apiserver refuses it by a schema rule.
_IMMUTABLE = (
    "KubevirtClusterTemplate",
    "KubevirtMachineTemplate",
    "NutanixMachineTemplate",
    "NutanixClusterTemplate",
    "KubeadmControlPlaneTemplate",
)


def _immutable(version: dict[str, Any]) -> dict[str, Any]:
    version = copy.deepcopy(version)
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    template = properties["spec"]["properties"]["template"]["properties"]["spec"]
    message = "immutable: Machines may already use it; create a template with another name and refer to that"
    rules = template.setdefault("x-kubernetes-validations", [])
    rules.append({"rule": "self == oldSelf", "message": message, "reason": "FieldValueForbidden"})
    return version


def _names(label: str, value: str, served: set[str]) -> bool:
    """A label such as `cluster.x-k8s.io/v1beta1: v1beta1` says which versions keep to a contract."""
    is_contract = label.startswith("cluster.x-k8s.io/v1")
    return not is_contract or bool(served & set(value.split("_")))


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
