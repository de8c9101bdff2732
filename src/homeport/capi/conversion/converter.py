"""Objects of a kind in any of its versions, without loss: through the newest one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import orjson

from homeport.api.meta import Object
from homeport.capi.conversion.codec import Context, Versions
from homeport.capi.conversion.field import older_field, unread_durations
from homeport.capi.conversion.fit import fit
from homeport.capi.conversion.loss import (
    Loss,
    find_losses,
    put_annotation,
    read_losses,
    restore,
    take_annotation,
)
from homeport.capi.conversion.rule import Rule, apply_down, apply_up
from homeport.client.errors import Cause
from homeport.machinery.crd.generate import generate
from homeport.machinery.schema import SchemaChecker, compile_checker

Json = dict[str, Any]


class Converter:
    """One kind: its versions, oldest first, and the rules between each older one and the newest."""

    def __init__(self, kinds: Sequence[type[Object]], rules: Sequence[Rule], versions: Versions) -> None:
        self._kinds = {kind.__resource__.version: kind for kind in kinds}
        self._newest = kinds[-1].__resource__.version
        self._rules = rules
        self._versions = versions

    @cached_property
    def _schemas(self) -> dict[str, Json]:
        return {version: generate(kind) for version, kind in self._kinds.items()}

    def __call__(self, obj: Json, version: str) -> Json:
        """The object in another version, also if its fields have the wrong shape. Raises ValueError where the version
        or the annotation of an earlier conversion can't be read."""
        source = str(obj.get("apiVersion", "")).rpartition("/")[2]
        for name in (source, version):
            if name not in self._kinds:
                raise ValueError(f"version {name} is unknown: there are {', '.join(self._kinds)}")
        if source != self._newest:
            obj = self._to_newest(obj, source)
        return obj if version == self._newest else self._from_newest(obj, version)

    # -- validation --------------------------------------------------------------------------------------------

    def violations(self, new: Json, old: Json | None) -> list[Cause]:
        """What the schema of the newest version has against objects in that version, which came as another one."""
        found = self._checker.validate(new, old)
        causes = [Cause(*each) for each in found if each.field.startswith("spec")]
        older = self._from_newest(orjson.loads(orjson.dumps(new)), next(iter(self._kinds)))
        return [*causes, *unread_durations(self._rules, new, older)]

    def renamed(self, cause: Cause) -> Cause:
        """The cause with the field as older versions call it."""
        field = older_field(self._rules, cause.field)
        message = cause.message.replace(cause.field, field) if cause.field else cause.message
        return Cause(cause.reason, message, field)

    @cached_property
    def _checker(self) -> SchemaChecker:
        return compile_checker(self._schemas[self._newest])

    # -- conversion --------------------------------------------------------------------------------------------

    def _to_newest(self, old: Json, version: str) -> Json:
        annotation = take_annotation(old)
        new = self._up(old)
        if annotation is not None:
            restore(new, self._losses(annotation, version))
        put_annotation(new, find_losses(self._down(new, version), old, zeros=False))
        return new

    def _from_newest(self, new: Json, version: str) -> Json:
        annotation = take_annotation(new)
        old = self._down(new, version)
        if annotation is not None:
            found = read_losses(annotation)
            restore(old, found if isinstance(found, list) else ())
        put_annotation(old, find_losses(self._up(old), new, zeros=True))
        return old

    def _losses(self, annotation: str, version: str) -> Sequence[Loss]:
        found = read_losses(annotation)
        if isinstance(found, list):
            return found
        return find_losses(self._up(self._down(found, version)), found, zeros=True)

    def _up(self, old: Json) -> Json:
        new: Json = orjson.loads(orjson.dumps(old))
        apply_up(self._rules, new, self._context(old))
        fit(new, self._schemas[self._newest])
        return self._named(new, self._newest)

    def _down(self, new: Json, version: str) -> Json:
        old: Json = orjson.loads(orjson.dumps(new))
        apply_down(self._rules, old, self._context(new))
        fit(old, self._schemas[version])
        return self._named(old, version)

    def _context(self, obj: Json) -> Context:
        return Context(str((obj.get("metadata") or {}).get("namespace", "")), self._versions)

    def _named(self, obj: Json, version: str) -> Json:
        obj["apiVersion"] = self._kinds[version].__resource__.api_version
        return obj
