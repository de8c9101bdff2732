"""Behaviour of built-in kinds beyond their schema. A kind without special rules uses `Plain` as it is."""

from __future__ import annotations

from collections.abc import Mapping

from homeport.apiserver.kinds import decode
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause


class NoRules:
    """A kind that needs no rule at any point of an object's life. Strategies extend it where theirs does."""

    def default(self, obj: Json) -> None:
        """Nothing to add."""

    def prepare_update(self, obj: Json, old: Json) -> None:
        """Nothing to carry over."""

    def prepare_delete(self, obj: Json, now: str) -> None:
        """Nothing to hold it for."""

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        return []

    def fields(self, obj: Json) -> Mapping[str, str]:
        return {}


class Plain(NoRules):
    """No rules of its own. Kinds with a status keep it out of reach of plain writes (the registry sees to that)."""

    has_status = False
    definitions: Mapping[str, str] = {}  # in wire.json, by apiVersion; a strategy for a kind of no file has none

    def prepare_create(self, obj: Json) -> None:
        self.begin(obj)
        # What was just set is as incomplete as what a client sends.
        definition = self.definitions.get(obj.get("apiVersion", ""))
        if definition:
            decode.fill(definition, obj)
        self.default(obj)

    def begin(self, obj: Json) -> None:
        """Sets what a new object starts with, and clears what its writer has no say in."""
        if self.has_status:
            obj["status"] = {}


class WithStatus(Plain):
    has_status = True
