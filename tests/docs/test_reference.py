"""The reference pages say what the code says: names that are in one are in the other."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from homeport.addons.catalogue import catalogue
from homeport.api.kubevirt import v1alpha1 as kubevirt
from homeport.api.nutanix import v1beta1 as nutanix
from homeport.app.platform import chosen
from homeport.capi import name
from homeport.capi.name import Condition, Reason

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/homeport"
REFERENCE = ROOT / "docs/reference"
# Where conditions and their reasons come from.
_TELLING = (
    "runtime/reconciler.py",
    "capi",
    "core",
    "helm",
    "addons",
    "bootstrap",
    "controlplane",
    "hosted",
    "ipam",
    "infra",
    "providers",
)
# Which argument of these calls is the reason.
_REASON_AT = {
    "Wait": 0,
    "Hold": 0,
    "Terminal": 0,
    "Policy": 0,
    "Problem": 0,
    "Pending": 0,
    "DatastoreError": 0,
    "_bad_endpoint": 0,
    "_waits": 0,
    "_fails": 0,
    "Defer": 1,
    "Check": 2,
    "ConditionReport": 2,
}
_CODE = re.compile(r"`([^`]+)`")
_ROW = re.compile(r"^\| (?:\*\*)?`([^`]+)`", re.MULTILINE)


def modules(*parts: str) -> Iterator[ast.Module]:
    for part in parts:
        for path in sorted((SOURCE / part).rglob("*.py")) or [SOURCE / part]:
            if path != SOURCE / "capi/name.py":
                yield ast.parse(path.read_text())


def owner_of(node: ast.Attribute) -> str:
    return node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")


def constants_used(holder: type, parts: tuple[str, ...] = _TELLING) -> set[str]:
    """The values of those constants of a class that some code reads."""
    return {
        str(vars(holder)[node.attr])
        for tree in modules(*parts)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and owner_of(node) == holder.__name__ and node.attr in vars(holder)
    }


def reasons_spelled(parts: tuple[str, ...] = _TELLING) -> set[str]:
    """Reasons that are written where they are used, or as a constant of that module."""
    found = set()
    for tree in modules(*parts):
        known = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            at = (
                _REASON_AT.get(node.func.id) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
            )
            if at is None or not isinstance(node, ast.Call) or len(node.args) <= at:
                continue
            value: ast.AST | None = node.args[at]
            if isinstance(value, ast.Name):
                value = known.get(value.id)
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found.add(value.value)
    return found


def words_of_the_code(parts: tuple[str, ...] = _TELLING) -> set[str]:
    found = {str(value) for holder in (Condition, Reason) for value in vars(holder).values()}
    for tree in modules(*parts):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            elif isinstance(node, ast.ClassDef):
                found.add(node.name)
    return found


def tables(page: str) -> str:
    return "\n".join(line for line in (REFERENCE / page).read_text().splitlines() if line.startswith("|"))


def test_every_condition_and_reason_of_the_code_is_on_its_page() -> None:
    shown = set(_CODE.findall((REFERENCE / "conditions.md").read_text()))
    told = constants_used(Condition) | constants_used(Reason) | reasons_spelled()
    assert len(told) > 120, "the code is not read as it is written"
    assert not sorted(told - shown)


def test_every_reason_of_the_code_has_its_cause_and_cure() -> None:
    parts = (*_TELLING, "platforms")
    shown = set(_CODE.findall((REFERENCE / "reasons.md").read_text()))
    told = constants_used(Reason, parts) | reasons_spelled(parts)
    assert len(told) > 300, "the code is not read as it is written"
    assert not sorted(told - shown)
    named = {each for each in shown if re.fullmatch(r"[A-Z][A-Za-z]+", each)}
    assert not sorted(named - words_of_the_code(parts))


def test_a_reason_stands_in_one_place() -> None:
    listed = [each for each in _CODE.findall((REFERENCE / "reasons.md").read_text()) if re.fullmatch(r"[A-Z]\w+", each)]
    assert not sorted({each for each in listed if listed.count(each) > 1})


def test_no_condition_or_reason_on_the_page_is_made_up() -> None:
    shown = {each for each in _CODE.findall(tables("conditions.md")) if re.fullmatch(r"[A-Z][A-Za-z]+", each)}
    assert not sorted(shown - words_of_the_code())


def test_every_label_and_annotation_of_the_page_is_known_to_the_code() -> None:
    text = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    listed = {each.partition(":")[0] for each in _CODE.findall(tables("cluster-api.md")) if "/" in each}
    assert len(listed) > 40
    assert not sorted(each for each in listed if each.removesuffix("/...") not in text)


def test_every_name_that_controllers_act_on_is_on_the_page() -> None:
    """What is in name.py and used, but for what no user meets: finalizers, internals, and what is written in passing."""
    used = "\n".join(path.read_text() for path in SOURCE.rglob("*.py") if path != SOURCE / "capi/name.py")
    page = (REFERENCE / "cluster-api.md").read_text()
    missing = [
        value
        for key, value in vars(name).items()
        if isinstance(value, str)
        and "x-k8s.io/" in value
        and re.search(rf"\b{key}\b", used)
        and not key.endswith(("_FINALIZER", "_PREFIX"))
        and "internal" not in value
        and key not in ("PRE_TERMINATE_KCP_CLEANUP", "OK_TO_DELETE", "POOL_NAME_LABEL")
        and value not in page
    ]
    # The page writes the second of two that differ in their last word short.
    assert missing in ([], [name.AUTOSCALER_MAX_SIZE])


def test_every_kind_and_version_is_on_the_page() -> None:
    rows = [line for line in tables("cluster-api.md").splitlines() if re.search(r"\| `[a-z0-9.-]+\.[a-z]+` \| v", line)]
    for body in chosen().definitions():
        spec = body["spec"]
        (row,) = [
            line
            for line in rows
            if spec["names"]["kind"] in re.split(r"[ ,|]+", line.split("|")[1]) and f"`{spec['group']}`" in line
        ]
        versions = {each["name"] for each in spec["versions"]}
        assert set(re.split(r", ", row.split("|")[3].strip())) == versions, spec["names"]["kind"]


def fields(kind: type[msgspec.Struct]) -> Iterator[str]:
    for each in msgspec.structs.fields(kind):
        yield each.encode_name


@pytest.mark.parametrize(
    "kind",
    [
        nutanix.MachineSpec, nutanix.DataDisk, nutanix.DeviceProperties, nutanix.StorageConfig, nutanix.ClusterSpec, nutanix.PrismCentral,
        nutanix.TrustBundle, nutanix.InlineFailureDomain, nutanix.FailureDomainSpec, nutanix.ImageLookup,
    ],
)  # fmt: skip
def test_every_field_of_nutanix_kinds_is_on_the_page(kind: type[msgspec.Struct]) -> None:
    shown = {part for each in _CODE.findall((REFERENCE / "nutanix.md").read_text()) for part in re.split(r"\W+", each)}
    assert not sorted(set(fields(kind)) - shown)


@pytest.mark.parametrize(
    "kind",
    [kubevirt.MachineSpec, kubevirt.BootDisk, kubevirt.DataDisk, kubevirt.ClusterSpec, kubevirt.LoadBalancer],
)
def test_every_field_of_kubevirt_kinds_is_on_the_page(kind: type[msgspec.Struct]) -> None:
    text = (REFERENCE / "harvester.md").read_text()
    shown = {part for each in _CODE.findall(text) for part in re.split(r"\W+", each)}
    assert not sorted(set(fields(kind)) - shown)


def properties(schema: Any) -> Iterator[str]:
    """Names of all fields below a schema, wherever they are."""
    if isinstance(schema, dict):
        names = schema.get("properties")
        yield from names if isinstance(names, dict) else ()
        for each in schema.values():
            yield from properties(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from properties(each)


@pytest.mark.parametrize("body", chosen().definitions(), ids=lambda body: str(body["metadata"]["name"]))
def test_every_field_of_every_kind_is_on_the_page_of_its_group(body: dict[str, Any]) -> None:
    spec = body["spec"]
    page = (REFERENCE / f"fields-{spec['group']}.md").read_text()
    kind = spec["names"]["kind"]
    own = page.partition(f"\n## {kind}\n")[2].partition("\n## ")[0]
    assert own, kind
    # A template repeats the fields of the kind that it is for.
    own += page.partition(f"\n## {kind.removesuffix('Template')}\n")[2].partition("\n## ")[0]
    shown = {part for each in _ROW.findall(own) for part in re.split(r"[.\[\]{}]+", each)}
    (stored,) = [each for each in spec["versions"] if each["storage"]]
    wanted = set(properties(stored["schema"]["openAPIV3Schema"])) - {"apiVersion", "kind", "metadata"}
    assert not sorted(wanted - shown)


def test_generated_pages_are_what_the_program_says() -> None:
    tool = [sys.executable, str(ROOT / "tools/gen_reference.py"), "--check"]
    done = subprocess.run(tool, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_every_add_on_of_the_catalogue_is_on_its_page() -> None:
    rows = {line.split("`")[1]: line for line in tables("addons.md").splitlines() if line.startswith("| `")}
    for entry in catalogue().values():
        row = rows[entry.name]
        assert entry.chart.repository in row
        assert ", ".join(entry.versions) in row
        assert all(f"`{each.name}`{'*' if each.required else ''}" in row for each in entry.parameters)
