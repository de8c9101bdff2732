#!/usr/bin/env python3
"""Write src/homeport/apiserver/kinds/wire.json: how the pinned Kubernetes release encodes the fields of built-in kinds.

    gen_wire.py            read the Go modules of tools/kube/go.mod, write the file
    gen_wire.py --check    the same, but only compare; exit 1 if the checked-in file differs

OpenAPI does not say which fields are left out when empty, nor what their Go types are called in error messages. The
struct tags do: field names, types and flags are taken from there, nothing else. Needs the modules in Go's cache, where
tools/kube/build puts them.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson

ROOT = Path(__file__).resolve().parents[1]
KINDS = ROOT / "src/homeport/apiserver/kinds"
TARGET = KINDS / "wire.json"
MODULES = {
    "io.k8s.api.": "k8s.io/api",
    "io.k8s.apimachinery.": "k8s.io/apimachinery",
    "io.k8s.apiextensions-apiserver.": "k8s.io/apiextensions-apiserver",
    "io.k8s.kube-aggregator.": "k8s.io/kube-aggregator",
}
# Types that encode themselves: decode.py knows them by these names.
LEAVES = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "microtime",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Duration": "duration",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "any",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intstr",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps": "any",
}
BASIC = {"string", "bool", "int", "int32", "int64", "uint32", "uint64", "float64", "byte", "uint8"}
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
EMPTY = re.compile(r"^type (\w+) struct ?\{\}", re.M)
NAMED = re.compile(r"^type (\w+) =? ?([\w\[\]*.]+)$", re.M)
FIELD = re.compile(r"^\t(?:(\w+)\s+)?([\w\[\]*.]+)\s+`([^`]*)`", re.M)
TAG = re.compile(r'json:"([^"]*)"')
IMPORT = re.compile(r'^\s*(?:import )?(?:(\w+) )?"(k8s\.io/[^"]+)"', re.M)


class Package:
    def __init__(self, prefix: str, folder: Path) -> None:
        self.prefix = prefix
        self.structs: dict[str, str] = {}
        self.named: dict[str, str] = {}
        self.imports: dict[str, str] = {}
        for path in sorted(folder.glob("*.go")):
            if path.name.startswith("zz_generated") or path.name.endswith(("_test.go", "generated.pb.go")):
                continue
            text = path.read_text()
            self.structs |= dict(STRUCT.findall(text))
            self.structs |= dict.fromkeys(EMPTY.findall(text), "")
            self.named |= {name: target for name, target in NAMED.findall(text) if target != "struct"}
            for alias, target in IMPORT.findall(text):
                self.imports[alias or target.rsplit("/", 1)[1]] = target


class Reader:
    def __init__(self, modules: dict[str, Path]) -> None:
        self._modules = modules
        self._packages: dict[str, Package] = {}
        self.structs: dict[str, dict[str, list[str]]] = {}
        self.named: dict[str, str] = {}

    def add(self, definition: str) -> None:
        if definition in self.structs or definition in LEAVES or definition in self.named:
            return
        package, name = self._package(definition), definition.rsplit(".", 1)[1]
        if name in package.structs:
            fields: dict[str, list[str]] = {}
            self.structs[definition] = fields
            for field, kind, flags, embedded in self._fields(package, name):
                fields[field] = [kind, flags, embedded] if embedded else [kind, flags] if flags else [kind]
        elif name in package.named:
            self.named[definition] = self._type(package, package.named[name])
        else:
            raise SystemExit(f"no Go type for {definition}")

    def _package(self, definition: str) -> Package:
        prefix = definition.rsplit(".", 1)[0]
        if prefix not in self._packages:
            start = next(start for start in MODULES if definition.startswith(start))
            rest = prefix.removeprefix(start.removesuffix(".")).replace(".", "/").lstrip("/")
            self._packages[prefix] = Package(prefix, self._modules[MODULES[start]] / rest)
        return self._packages[prefix]

    def _fields(self, package: Package, name: str, embedded: str = "") -> Iterator[tuple[str, str, str, str]]:
        for _, kind, tags in FIELD.findall(package.structs[name]):
            tag = TAG.search(tags)
            if tag is None or tag[1] == "-":
                continue
            wire, *options = tag[1].split(",")
            if not wire:
                yield from self._inline(package, kind)
                continue
            flags = "".join(letter for letter, option in (("o", "omitempty"), ("z", "omitzero")) if option in options)
            yield wire, self._type(package, kind), flags, embedded

    def _inline(self, package: Package, kind: str) -> Iterator[tuple[str, str, str, str]]:
        target = self._qualified(package, kind.lstrip("*"))
        yield from self._fields(self._package(target), target.rsplit(".", 1)[1], target.rsplit(".", 1)[1])

    def _qualified(self, package: Package, name: str) -> str:
        if "." not in name:
            return f"{package.prefix}.{name}"
        alias, local = name.split(".")
        target = package.imports[alias]
        for start, module in MODULES.items():
            if target == module or target.startswith(module + "/"):
                return start + target.removeprefix(module).lstrip("/").replace("/", ".") + "." + local
        raise SystemExit(f"{package.prefix}: unknown import {target}")

    def _type(self, package: Package, kind: str) -> str:
        if kind.startswith("*"):
            return "*" + self._type(package, kind[1:])
        if kind.startswith("[]"):
            return "[]" + self._type(package, kind[2:])
        if match := re.fullmatch(r"map\[([\w.]+)\](.+)", kind):
            return f"map[{match[1]}]" + self._type(package, match[2])
        if kind in BASIC:
            return kind
        if kind == "types.UID":
            self.named[kind] = "string"
            return kind
        target = self._qualified(package, kind)
        if target in LEAVES:
            return LEAVES[target]
        self.add(target)
        return target


def module_folders() -> dict[str, Path]:
    command = ["go", "list", "-m", "-f", "{{.Path}} {{.Dir}}", *MODULES.values()]
    listed = subprocess.run(command, cwd=ROOT / "tools/kube", capture_output=True, text=True, check=True).stdout
    return {path: Path(folder) for path, folder in (line.split() for line in listed.splitlines())}


def render() -> bytes:
    reader = Reader(module_folders())
    facts = orjson.loads((KINDS / "builtin.json").read_bytes())
    for found in facts["resources"]:
        reader.add(found["definition"])
        for sub in found["subresources"].values():
            if sub["definition"] in facts["definitions"]:
                reader.add(sub["definition"])
    text = json.dumps({"named": reader.named, "structs": reader.structs}, sort_keys=True, separators=(",", ":"))
    return text.replace('},"io.', '},\n"io.').encode() + b"\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    wanted = render()
    if parser.parse_args().check:
        same = TARGET.exists() and TARGET.read_bytes() == wanted
        print("wire.json is up to date" if same else "wire.json differs from the Go sources: run tools/gen_wire.py")
        return 0 if same else 1
    TARGET.write_bytes(wanted)
    print(f"wrote {TARGET.relative_to(ROOT)}: {len(wanted)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
