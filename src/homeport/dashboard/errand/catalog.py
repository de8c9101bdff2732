"""The errands of pages by name, and who may have them done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from homeport.api.meta import Resource
from homeport.app.tree.read import is_part
from homeport.client.config import Config
from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.dashboard.errand.deed import heal, rollout, upgrade
from homeport.dashboard.errand.manifest import read_objects
from homeport.dashboard.errand.run import ErrandError, Errands
from homeport.dashboard.person import Person
from homeport.machinery.yaml import YamlError, load_all

# Errands that change nothing: they end when nobody waits for them.
READING = frozenset({"plan", "logs", "choices"})


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An errand, as the page asks for it."""

    errand: str
    options: dict[str, Any] = {}


_Do = Callable[[dict[str, Any], Person, Config, Errands], Awaitable[Any]]


async def do_errand(asked: Asked, person: Person, config: Config, errands: Errands) -> Any:
    """Raises ErrandError and ApiError."""
    found = _ERRANDS.get(asked.errand)
    if found is None:
        raise ErrandError(f"unknown errand {asked.errand!r}: expected one of {', '.join(_ERRANDS)}")
    return await found(asked.options, person, config, errands)


async def _plan(options: dict[str, Any], person: Person, config: Config, errands: Errands) -> Any:
    """For who may make the change: the checks of the provider ask the hypervisor that the manifest names."""
    delete = bool(options.get("delete"))
    parts = 0
    for each in _objects(options):
        kind = await _kind(person, each)
        if kind is None or not is_part(kind):
            continue  # no controller of clusters reads it
        parts += 1
        meta = each["metadata"]
        key = Key(str(meta.get("namespace") or config.namespace) if kind.namespaced else "", str(meta["name"]))
        verb = "delete" if delete else await _verb(person, kind, key)
        if not await person.may(verb, kind, key.namespace, key.name):
            raise ErrandError(f"you may not {verb} {kind.plural} in namespace {key.namespace}")
    return await errands.run("plan", options, person, config) if parts else None


def _objects(options: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        return read_objects(options)
    except YamlError as error:
        raise ErrandError(str(error)) from error


async def _verb(person: Person, kind: Resource, key: Key) -> str:
    try:
        await person.client.get(kind, key)
    except NotFound:
        return "create"
    return "update"


async def _kind(person: Person, manifest: dict[str, Any]) -> Resource | None:
    group = str(manifest.get("apiVersion")).rpartition("/")[0]
    wanted = (group, manifest.get("kind"))
    return next((each for each in await person.kinds() if (each.group, each.kind) == wanted), None)


async def _heal(options: dict[str, Any], person: Person, config: Config, errands: Errands) -> Any:
    return await heal(person.client, options)


async def _rollout(options: dict[str, Any], person: Person, config: Config, errands: Errands) -> Any:
    return await rollout(person.client, options)


async def _upgrade(options: dict[str, Any], person: Person, config: Config, errands: Errands) -> Any:
    return await upgrade(person.client, options)


async def _logs(options: dict[str, Any], person: Person, config: Config, errands: Errands) -> Any:
    return await errands.run("logs", options, person, config)


async def _choices(options: dict[str, Any], person: Person, config: Config, errands: Errands) -> Any:
    return await errands.run("choices", options, person, config)


async def _parse(options: dict[str, Any], person: Person, config: Config, errands: Errands) -> Any:
    """The object of a YAML text, for a form."""
    try:
        found = load_all(str(options.get("manifest") or "").encode(), "the manifest")
    except YamlError as error:
        raise ErrandError(str(error)) from error
    if len(found) != 1:
        raise ErrandError(f"the manifest has {len(found)} objects: expected one")
    return found[0]


_ERRANDS: dict[str, _Do] = {
    "choices": _choices,
    "parse": _parse,
    "plan": _plan,
    "logs": _logs,
    "heal": _heal,
    "rollout": _rollout,
    "upgrade": _upgrade,
}
