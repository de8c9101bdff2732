"""Signals of autopilot: annotations on ControlNodes and Nodes that make k0s on a machine upgrade itself."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import orjson

from homeport.api.meta import Resource
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.clock import rfc3339
from homeport.sim.machine.workload.k0s.agent import Agent
from homeport.sim.machine.workload.k0s.definition import CONTROL_NODE
from homeport.sim.machine.workload.k0s.member import announce
from homeport.sim.machine.workload.kind import NODE, Json

if TYPE_CHECKING:
    from homeport.sim.machine.workload.k0s.platform import Platform

_VERSION, _DATA = "k0sproject.io/autopilot-signal-version", "k0sproject.io/autopilot-signal-data"
COMPLETED, FAILED, FAILED_DOWNLOAD = "Completed", "Failed", "FailedDownload"
_DOWNLOADING, _CORDONING, _APPLYING, _RESTART = "Downloading", "Cordoning", "ApplyingUpdate", "Restart"
_UNCORDONING = "UnCordoning"


def read(obj: Json) -> Json | None:
    """The signal on an object; None if there is none that can be read."""
    annotations = obj["metadata"].get("annotations") or {}
    if annotations.get(_VERSION) != "v2":
        return None
    try:
        found = orjson.loads(annotations.get(_DATA) or "")
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) and found.get("planId") and found.get("command") else None


async def send(platform: Platform, kind: Resource, name: str, plan_id: str, command: Json) -> None:
    data = {"planId": plan_id, "created": rfc3339(platform.cluster.clock.now()), "command": command}
    await _write(platform, kind, name, data)


async def _write(platform: Platform, kind: Resource, name: str, data: Json) -> None:
    annotations = {_VERSION: "v2", _DATA: orjson.dumps(data).decode()}
    patch = MergePatch({"metadata": {"annotations": annotations}})
    await platform.cluster.client("k0s").patch(kind, Key("", name), patch)


async def settle_signals(platform: Platform) -> None:
    """Every machine that is alive follows the signal on its own object, one step at a time."""
    for agent in list(platform.agents.values()):
        if not agent.host.guest.running:
            continue
        kind = CONTROL_NODE if agent.controller else NODE
        obj = platform.read(kind, agent.name)
        data = read(obj) if obj is not None else None
        if data is None or not data["command"].get("k0supdate"):
            continue
        status = (data.get("status") or {}).get("status") or ""
        following = await _follow(platform, agent, status, data["command"]["k0supdate"])
        if following:
            agent.host.log("info", f"Updating signaling response to '{following}'", "autopilot")
            now = rfc3339(platform.cluster.clock.now())
            await _write(platform, kind, agent.name, {**data, "status": {"status": following, "timestamp": now}})


async def _follow(platform: Platform, agent: Agent, status: str, wanted: Json) -> str:
    """The state after this one; '' if nothing follows."""
    host, version = agent.host, str(wanted["version"])
    if not status:
        host.log("info", f"Current version of k0s = '{host.version()}', requested version = '{version}'", "autopilot")
        return COMPLETED if host.version() == version and not wanted.get("forceupdate") else _DOWNLOADING
    if status == _DOWNLOADING:
        if _download(agent, wanted) is None:
            return FAILED_DOWNLOAD
        return _CORDONING if agent.node else _APPLYING
    if status == _CORDONING:
        await _cordon(platform, agent.node, cordoned=True)
        return _APPLYING
    if status == _APPLYING:
        content = _download(agent, wanted)
        if content is None:
            return FAILED
        await host.upgrade(content)
        if agent.controller:
            await announce(platform, agent)
        return _RESTART
    if status == _RESTART:
        if host.version() != version:
            host.log("error", f"k0s is {host.version()} after the restart, not {version}", "autopilot")
            return ""  # as the real one: the plan waits for ever
        return _UNCORDONING if agent.node else COMPLETED
    if status == _UNCORDONING:
        await _cordon(platform, agent.node, cordoned=False)
        return COMPLETED
    return ""


def _download(agent: Agent, wanted: Json) -> bytes | None:
    host, url = agent.host, str(wanted["url"])
    try:
        content = host.fetch(url)
    except OSError as failed:
        host.log("error", f"Unable to download '{url}': download failed: {failed}", "autopilot")
        return None
    expected, found = str(wanted.get("sha256") or ""), hashlib.sha256(content).hexdigest()
    if expected and expected.lower() != found:
        host.log("error", f"Unable to download '{url}': hash mismatch: expected {expected}, got {found}", "autopilot")
        return None
    return content


async def _cordon(platform: Platform, node: str, *, cordoned: bool) -> None:
    """Pods are not evicted: k0s restarts its own programs, containers go on."""
    if platform.read(NODE, node) is not None:
        patch = MergePatch({"spec": {"unschedulable": cordoned or None}})
        await platform.cluster.client("k0s").patch(NODE, Key("", node), patch)
