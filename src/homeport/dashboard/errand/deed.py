"""What commands do in a few requests, for buttons of a page: with the user's own connection."""

from __future__ import annotations

from typing import Any

from homeport.app.tree.read import NoCluster, Reader
from homeport.app.upkeep import heal as healing
from homeport.app.upkeep import upgrade as upgrading
from homeport.app.upkeep.change import apply_changes
from homeport.capi.object.rollout import Refused
from homeport.client.http import HttpClient
from homeport.client.protocol import Key
from homeport.controlplane.kubeadm import rollout as plane
from homeport.core.machinedeployment import rollback as deployment
from homeport.core.machinedeployment.revision import NoRevision
from homeport.dashboard.errand.run import ErrandError
from homeport.runtime.clock import SystemClock


async def heal(client: HttpClient, options: dict[str, Any]) -> str:
    """Replaces one Machine. Raises ErrandError and ApiError, as all here."""
    try:
        owner = await healing.heal(client, _key(options), SystemClock().now(), force=bool(options.get("force")))
    except healing.Unsafe as error:
        raise ErrandError(str(error).replace("use --force", "choose to replace it nevertheless")) from error
    return f"Machine {options['name']} is marked: {owner} replaces it"


async def rollout(client: HttpClient, options: dict[str, Any]) -> str:
    """`verb` is restart, undo, pause or resume."""
    module: Any = plane if options.get("kind") == "KubeadmControlPlane" else deployment
    key, verb, name = _key(options), options.get("verb"), f"{options.get('kind')} {options.get('name')}"
    try:
        if verb == "restart":
            when = await module.restart(client, key, SystemClock().now())
            return f"{name}: machines created before {when} are replaced"
        if verb == "undo" and module is deployment:
            found = await deployment.undo(client, key)
            return f"{name} is rolled back to revision {found.number}"
        if verb in ("pause", "resume"):
            await module.pause(client, key, paused=verb == "pause")
            return f"The rollout of {name} is {verb}d"
    except (Refused, NoRevision) as error:
        raise ErrandError(str(error)) from error
    raise ErrandError(f"{name} has no {verb!r}: expected restart, pause, resume, or undo of a MachineDeployment")


async def upgrade(client: HttpClient, options: dict[str, Any]) -> Any:
    """The objects as they should be, for the plan; with `apply` they are written, and the answer is what was done."""
    try:
        found = await Reader(client).read(_key(options))
        changes = upgrading.upgrade(
            found.roots[0], found.objects, str(options.get("version") or ""), str(options.get("image") or "")
        )
    except (NoCluster, upgrading.NoUpgrade) as error:
        raise ErrandError(str(error)) from error
    if not options.get("apply"):
        return [each.after for each in changes]
    return [line async for line in apply_changes(client, changes)]


def _key(options: dict[str, Any]) -> Key:
    return Key(str(options.get("namespace") or ""), str(options.get("name") or ""))
