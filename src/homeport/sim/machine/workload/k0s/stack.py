"""Stacks: every folder of /var/lib/k0s/manifests on the leading controller is applied, and pruned when it changes."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING

from homeport.client.errors import ApiError
from homeport.sim.machine import yaml
from homeport.sim.machine.disk import Disk
from homeport.sim.machine.workload.k0s.apply import UnknownKind, apply, delete, labelled
from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.view import key_of

if TYPE_CHECKING:
    from homeport.sim.machine.workload.k0s.agent import Agent
    from homeport.sim.machine.workload.k0s.platform import Platform

FOLDER = "/var/lib/k0s/manifests"
LABEL = "k0s.k0sproject.io/stack"
# Folders of these names are left alone: k0s has other ways to bring them.
_INTERNAL = frozenset({"autopilot", "clusterconfig", "etcd-member", "helm", "system-rbac", "windows"})
_RETRY_SECONDS = 60.0


def read_stacks(disk: Disk) -> dict[str, dict[str, bytes]]:
    """Files by stack. Those that lie in the folder itself, or deeper, are not read."""
    found: dict[str, dict[str, bytes]] = defaultdict(dict)
    for path, entry in disk.files():
        parts = path.removeprefix(f"{FOLDER}/").split("/")
        if path.startswith(f"{FOLDER}/") and len(parts) == 2 and parts[1].endswith((".yaml", ".yml")):
            found[parts[0]][path] = entry.content
    return {name: files for name, files in found.items() if name not in _INTERNAL}


async def settle_stacks(platform: Platform) -> None:
    leader = platform.leader()
    if leader is None:
        return
    stacks = read_stacks(leader.host.disk)
    for name in platform.stacks.keys() - stacks.keys():
        if platform.stacks.pop(name).startswith(f"{leader.name}/"):  # another leader's folder is its own matter
            await _prune(platform, name, set())
    for name, files in stacks.items():
        digest = hashlib.sha256(b"\0".join(files.values())).hexdigest()
        if platform.stacks.get(name, "").rpartition("/")[2] == digest:
            continue
        if await _apply(platform, leader, name, files):
            platform.stacks[name] = f"{leader.name}/{digest}"
        else:
            platform.later(_RETRY_SECONDS)


async def _apply(platform: Platform, leader: Agent, name: str, files: dict[str, bytes]) -> bool:
    """False: something could not be applied. What could stays."""
    applied: set[tuple[str, str]] = set()
    complete = True
    for path, content in files.items():
        try:
            objects = [each for each in yaml.load_all(content.decode()) if isinstance(each, dict)]
        except (yaml.YAMLError, UnicodeDecodeError) as broken:
            complete = False
            _complain(platform, leader, name, f"{path}: {' '.join(str(broken).split())}")
            continue
        for obj in objects:
            problem = await _apply_one(platform, name, obj, applied)
            if problem:
                complete = False
                _complain(platform, leader, name, f"{path}: {problem}")
    if complete:
        await _prune(platform, name, applied)
        platform.complaints.pop(name, None)
        leader.host.log("info", f"Stack {name} applied", "applier-manager")
    return complete


async def _apply_one(platform: Platform, stack: str, obj: Json, applied: set[tuple[str, str]]) -> str:
    meta = obj.setdefault("metadata", {})
    meta["labels"] = {**(meta.get("labels") or {}), LABEL: stack}
    try:
        key = await apply(platform.cluster, obj)
    except (UnknownKind, ApiError) as problem:
        return str(problem)
    applied.add((str(obj["kind"]), str(key)))
    return ""


async def _prune(platform: Platform, name: str, applied: set[tuple[str, str]]) -> None:
    found = [(kind, key_of(obj)) for kind, obj in labelled(platform.cluster, LABEL, name)]
    await delete(platform.cluster, [(kind, key) for kind, key in found if (kind.kind, str(key)) not in applied])


def _complain(platform: Platform, leader: Agent, name: str, problem: str) -> None:
    """Once: it is tried again every minute."""
    if platform.complaints.get(name) != problem:
        platform.complaints[name] = problem
        leader.host.log("error", f"Failed to run stack {name}: {problem}", "applier-manager")
