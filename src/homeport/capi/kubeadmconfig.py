"""What is refused in a KubeadmConfigSpec, wherever it stands: in KubeadmConfigs, control planes and templates. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from homeport.client.errors import Cause

_IGNITION = "ignition"


def validate(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """`spec` is a KubeadmConfigSpec; `path` is where it stands."""
    yield from _files(spec, path)
    yield from _users(spec, path)
    yield from _ignition(spec, path)
    yield from _disks(spec, path)
    yield from _discovery(spec, path)


def _files(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    first: dict[str, int] = {}
    for i, file in enumerate(spec.get("files") or ()):
        where = f"{path}.files[{i}]"
        if file.get("content") and file.get("contentFrom"):
            yield _invalid(where, "set content or contentFrom, not both")
        yield from _source(file.get("contentFrom"), f"{where}.contentFrom")
        name = file.get("path")
        if name in first:
            yield _invalid(
                f"{where}.path", f"{name!r} is already the path of files[{first[name]}]: paths must be unique"
            )
        first.setdefault(name, i)


def _users(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for i, user in enumerate(spec.get("users") or ()):
        where = f"{path}.users[{i}]"
        if user.get("passwd") and user.get("passwdFrom"):
            yield _invalid(where, "set passwd or passwdFrom, not both")
        yield from _source(user.get("passwdFrom"), f"{where}.passwdFrom")


def _source(source: Mapping[str, Any] | None, where: str) -> Iterator[Cause]:
    if not source:
        return
    secret = source.get("secret") or {}
    for name in ("name", "key"):
        if not secret.get(name):
            yield Cause("FieldValueRequired", f"set the {name} of the Secret to read", f"{where}.secret.{name}")


def _ignition(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    if spec.get("format") != _IGNITION:
        if spec.get("ignition"):
            yield _invalid(f"{path}.format", f"must be {_IGNITION!r} when {path}.ignition is set")
        return
    for where, message in _impossible(spec):
        yield Cause("FieldValueForbidden", f"{message} when format is {_IGNITION!r}", f"{path}.{where}")


def _impossible(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(field, why): what Ignition has no words for."""
    for i, user in enumerate(spec.get("users") or ()):
        if user.get("inactive"):
            yield f"users[{i}].inactive", "users can't be made inactive"
    for i, file in enumerate(spec.get("files") or ()):
        if file.get("encoding") in ("gzip", "gzip+base64"):
            yield f"files[{i}].encoding", "only base64 is supported"
    if spec.get("bootCommands") is not None:
        yield "bootCommands", "boot commands are not supported: use preKubeadmCommands"
    disks = spec.get("diskSetup") or {}
    for i, partition in enumerate(disks.get("partitions") or ()):
        if partition.get("tableType") not in (None, "", "gpt"):
            yield f"diskSetup.partitions[{i}].tableType", "only gpt is supported"
        if partition.get("diskLayout"):
            yield (
                f"diskSetup.partitions[{i}].diskLayout",
                "partition sizes in percent are not supported: use ignition.containerLinuxConfig.additionalConfig",
            )
    for i, filesystem in enumerate(disks.get("filesystems") or ()):
        for name in ("replaceFS", "partition"):
            if filesystem.get(name):
                yield f"diskSetup.filesystems[{i}].{name}", f"{name} can't be used"


def _disks(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for i, partition in enumerate((spec.get("diskSetup") or {}).get("partitions") or ()):
        total = sum(int(each.get("percentage") or 0) for each in partition.get("diskLayout") or ())
        if total > 100:
            yield _invalid(
                f"{path}.diskSetup.partitions[{i}].diskLayout",
                f"the partitions of {partition.get('device')!r} take {total} percent of it: the maximum is 100",
            )


def _discovery(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    file = ((spec.get("joinConfiguration") or {}).get("discovery") or {}).get("file") or {}
    user = (file.get("kubeConfig") or {}).get("user") or {}
    if user.get("authProvider") and user.get("exec"):
        yield _invalid(f"{path}.joinConfiguration.discovery.file.kubeConfig.user", "set authProvider or exec, not both")


def _invalid(field: str, message: str) -> Cause:
    return Cause("FieldValueInvalid", message, field)
