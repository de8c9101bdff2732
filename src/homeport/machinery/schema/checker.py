"""Everything that a schema does to objects of one version, behind one interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final, Protocol

from homeport.machinery.schema import violation as v
from homeport.machinery.schema.explain import Explainer
from homeport.machinery.schema.fast import compile_fast
from homeport.machinery.schema.invariant import compile_invariants, embedded_violations, list_violations
from homeport.machinery.schema.metadata import OBJECT_META, OBJECT_META_SCHEMA
from homeport.machinery.schema.node import Schema
from homeport.machinery.schema.shape import Shaper
from homeport.machinery.schema.value import UNRELATED
from homeport.machinery.schema.violation import Violation

Json = dict[str, Any]

# After one of these a rule could meet values of types that it was not compiled for.
_BLOCKING: Final = frozenset((v.NOT_SUPPORTED, v.REQUIRED, v.TOO_LONG, v.TOO_MANY, v.TYPE_INVALID))
_UNCHECKED: Final = v.invalid(
    v.NOWHERE,
    None,
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


class Rules(Protocol):
    """The CEL rules of a schema, compiled (see homeport.machinery.cel)."""

    def validate(self, obj: object, old: object = ...) -> Iterable[Any]:
        """Broken rules, each with path, message, reason and value. Without `old` the object is a new one."""


class SchemaChecker:
    """Compiled on first use, part by part: a kind that is never used costs only this object."""

    def __init__(
        self,
        raw: Mapping[str, Any],
        *,
        definitions: Mapping[str, Any] | None = None,
        rules: Rules | Callable[[], Rules | None] | None = None,
        also: Callable[[Json], Iterable[Violation]] | None = None,
    ) -> None:
        self._raw = raw
        self._definitions = definitions
        self._builtin = definitions is not None
        self._given_rules = rules
        self._also = also

    @cached_property
    def schema(self) -> Schema:
        return Schema(self._raw, self._definitions)

    # -- shape

    def prune(self, obj: Json) -> list[str]:
        """Drops undeclared fields in place; gives their paths, sorted."""
        return self._pruner(obj)

    def default(self, obj: Json) -> None:
        """Drops nulls that mean nothing and fills in defaults, in place."""
        self._defaulter(obj)

    def settle(self, obj: Json) -> list[str]:
        """`prune` and `default` in one walk."""
        return self._settler(obj)

    def _shaper(self, *, prune: bool, default: bool) -> Shaper:
        meta = None if self._builtin else OBJECT_META_SCHEMA
        return Shaper(self.schema, prune=prune, default=default, builtin=self._builtin, meta=meta)

    @cached_property
    def _pruner(self) -> Shaper:
        return self._shaper(prune=True, default=False)

    @cached_property
    def _defaulter(self) -> Shaper:
        return self._shaper(prune=False, default=True)

    @cached_property
    def _settler(self) -> Shaper:
        return self._shaper(prune=True, default=True)

    # -- validation

    def validate(self, obj: Json, old: Json | None = None, *, flawed: bool = False) -> list[Violation]:
        """All that is wrong, except what was wrong in `old` and is left as it was. `flawed`: run no rules."""
        if self._accepts(obj):
            found: list[Violation] = []
        else:
            before = UNRELATED if old is None else old
            found = Explainer(self.schema, builtin=self._builtin).explain(obj, before)
            if self._builtin:
                found = [each for each in found if not _decodes_empty(each)]
            else:
                found += _explain_metadata(obj, old)
        return self._beyond_schema(obj, old, found, flawed)

    def validate_status(self, obj: Json, old: Json, *, flawed: bool = False) -> list[Violation]:
        """As `validate`, for a write to the status subresource: of the schema, only its status part is looked at."""
        found: list[Violation] = []
        status = self.schema.properties.get("status")
        if status is not None and "status" in obj and not self._accepts(obj):
            found = Explainer(status, builtin=self._builtin, within="status").explain(obj["status"], old.get("status"))
        return self._beyond_schema(obj, old, found, flawed)

    def _beyond_schema(self, obj: Json, old: Json | None, found: list[Violation], flawed: bool) -> list[Violation]:
        if self._also is not None:
            found += self._also(obj)
        if self._sound is not None and not self._sound(obj):
            found += embedded_violations(self.schema, obj)
            # A list that already held duplicates may keep them until somebody mends it.
            if old is None or next(list_violations(self.schema, old), None) is None:
                found += list_violations(self.schema, obj)
        rules = self._rules
        if rules is not None:
            if flawed or any(each.reason in _BLOCKING for each in found):
                found.append(_UNCHECKED)
            else:
                broken = rules.validate(obj) if old is None else rules.validate(obj, old)
                found += [v.broken_rule(each.path, each.message, each.reason, each.value) for each in broken]
        return found

    @cached_property
    def _accepts(self) -> Callable[[Any], bool]:
        meta = None if self._builtin else OBJECT_META
        return compile_fast(self._raw, definitions=self._definitions, builtin=self._builtin, meta=meta)

    @cached_property
    def _sound(self) -> Callable[[Any], bool] | None:
        return None if self._builtin else compile_invariants(self.schema)

    @cached_property
    def _rules(self) -> Rules | None:
        given = self._given_rules
        return given() if callable(given) else given


def _decodes_empty(found: Violation) -> bool:
    """Built-in kinds are decoded into Go structs, where what is absent is empty. Rules about that are the kind's own,
    and nobody holds a status to them.
    """
    return found.reason == v.REQUIRED and (found.field.startswith("status.") or found.field == "endpoints")


def _explain_metadata(obj: Json, old: Json | None) -> list[Violation]:
    before = UNRELATED if old is None else old.get("metadata", UNRELATED)
    return Explainer(OBJECT_META_SCHEMA, within="metadata").explain(obj.get("metadata", {}), before)


def compile_checker(
    raw: Mapping[str, Any],
    *,
    definitions: Mapping[str, Any] | None = None,
    rules: Rules | Callable[[], Rules | None] | None = None,
    also: Callable[[Json], Iterable[Violation]] | None = None,
) -> SchemaChecker:
    """A checker for a CRD's schema, or (with definitions) for a built-in kind's. `rules` may be a function that
    compiles them when they are first needed. `also` finds more of what is wrong; it runs before the rules.
    """
    return SchemaChecker(raw, definitions=definitions, rules=rules, also=also)
