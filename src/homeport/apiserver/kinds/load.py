"""Builds the built-in kinds from builtin.json."""

from __future__ import annotations

from functools import cache
from importlib import resources

import orjson

from homeport.api.meta import Resource
from homeport.apiserver.kinds import decode
from homeport.apiserver.kinds.behaviour import Behaviour, behaviours
from homeport.apiserver.kinds.strategy import Plain, WithStatus
from homeport.apiserver.resource import Json, Scale, ServedKind, Strategy, Version
from homeport.client.errors import BadRequest
from homeport.machinery.schema import Schema

_REF = "#/components/schemas/"
_SCALE = Scale(".spec.replicas", ".status.replicas", ".spec.selector")


@cache
def _facts() -> Json:
    facts: Json = orjson.loads(resources.files(__package__).joinpath("builtin.json").read_bytes())
    return facts


def definitions() -> Json:
    """OpenAPI v3 schemas by name, with references among them."""
    found: Json = _facts()["definitions"]
    return found


def kubernetes_version() -> str:
    return str(_facts()["version"])


@cache
def _schema(definition: str) -> Schema:
    """Shared by all servers of this process: it is never changed, and its parts are built on demand."""
    return Schema({"$ref": _REF + definition}, definitions())


class _WireChecker:
    """What decoding does: the rules of a kind, its defaults among them, are its strategy's."""

    def __init__(self, definition: str, version: str) -> None:
        self._definition = definition
        self._version = version

    def prune(self, obj: Json) -> list[str]:
        try:
            return decode.read(self._definition, obj)
        except decode.DecodeError as mistake:
            kind = self._definition.rsplit(".", 1)[1]
            raise BadRequest(f'{kind} in version "{self._version}" cannot be handled as a {kind}: {mistake}') from None

    def default(self, obj: Json) -> None:
        # Not the schema's defaults: those include zero values of fields that are left out when unset.
        decode.fill(self._definition, obj)

    def settle(self, obj: Json) -> list[str]:
        unknown = self.prune(obj)
        self.default(obj)
        return unknown

    def validate(self, obj: Json, old: Json | None, *, flawed: bool = False) -> tuple[tuple[str, str, str], ...]:
        return ()

    def validate_status(self, obj: Json, old: Json, *, flawed: bool = False) -> tuple[tuple[str, str, str], ...]:
        return ()


def builtin_kinds() -> list[ServedKind]:
    """Every built-in kind, ready to serve. Strategies may keep state of one server, so each call makes new ones."""
    known = behaviours()
    kinds: dict[tuple[str, str], list[Json]] = {}
    for facts in _facts()["resources"]:
        kinds.setdefault((facts["group"], facts["kind"]), []).append(facts)
    return [_served(versions, known.get(name)) for name, versions in kinds.items()]


def _served(versions: list[Json], behaviour: Behaviour | None) -> ServedKind:
    """One kind in all its versions; the first is the stored one."""
    facts = versions[0]
    strategy: Strategy = behaviour.strategy if behaviour else _default_strategy(facts)
    if isinstance(strategy, Plain):
        strategy.definitions = {_resource(each).api_version: each["definition"] for each in versions}
    served = ServedKind(
        group=facts["group"],
        kind=facts["kind"],
        plural=facts["plural"],
        singular=facts["singular"],
        namespaced=facts["namespaced"],
        storage=facts["version"],
        versions={each["version"]: _version(each) for each in versions},
        strategy=strategy,
        list_kind=f"{facts['kind']}List",
        short_names=tuple(facts["shortNames"]),
        categories=tuple(facts["categories"]),
        verbs=tuple(facts["verbs"]),
        subresources={
            name: (sub["group"], sub["version"], sub["kind"])
            for name, sub in facts["subresources"].items()
            if name not in ("status", "scale")
        },
        subresource_verbs={name: tuple(sub["verbs"]) for name, sub in facts["subresources"].items()},
        etag=kubernetes_version(),
    )
    if behaviour is not None:
        behaviour.shape(served)
    return served


def _resource(facts: Json) -> Resource:
    return Resource(facts["group"], facts["version"], facts["kind"], facts["plural"], facts["namespaced"])


def _version(facts: Json) -> Version:
    definition = facts["definition"]
    return Version(
        resource=_resource(facts),
        schema=_schema(definition),
        checker=_WireChecker(definition, facts["version"]),
        status="status" in facts["subresources"],
        scale=_SCALE if "scale" in facts["subresources"] else None,
        raw_schema={"$ref": _REF + definition},
    )


def _default_strategy(facts: Json) -> Plain:
    return WithStatus() if "status" in facts["subresources"] else Plain()
