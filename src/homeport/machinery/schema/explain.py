"""Validation that tells all that is wrong, in Kubernetes' words and with its sense of which alternative was meant.

This is the slow path: it runs only for values that the compiled validator (see fast.py) did not simply accept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.machinery.schema import violation as v
from homeport.machinery.schema.format import recognised, string_check
from homeport.machinery.schema.node import Schema
from homeport.machinery.schema.pattern import PatternError, search
from homeport.machinery.schema.value import (
    UNRELATED,
    correlate,
    in_range,
    is_multiple,
    is_whole,
    kind_of,
    same,
    types_of,
    unchanged,
)
from homeport.machinery.schema.violation import Violation


class Result:
    """Errors by their text, each once, and the number of checks that passed: the best alternative has the most."""

    __slots__ = ("errors", "matches")

    def __init__(self) -> None:
        self.errors: dict[str, Violation] = {}
        self.matches = 0

    def add(self, text: str, violation: Violation) -> None:
        self.errors.setdefault(text, violation)

    def merge(self, other: Result) -> None:
        for text, violation in other.errors.items():
            self.errors.setdefault(text, violation)
        self.matches += other.matches


class Explainer:
    """Validates values against one schema. `within` is the path of the value in the object, for the causes' fields."""

    def __init__(self, schema: Schema, *, builtin: bool = False, within: str = "") -> None:
        self._schema = schema
        self._builtin = builtin
        self._within = within

    def explain(self, value: object, old: object = UNRELATED) -> list[Violation]:
        """Everything that is wrong with the value. What was wrong in `old` and has not changed is tolerated."""
        return list(self._ratcheted(self._schema, value, "", old).errors.values())

    # -- places

    def _field(self, path: str) -> str:
        path = path.removeprefix(".")
        if not path:
            return self._within or v.NOWHERE
        if not self._within:
            return path
        return f"{self._within}{path}" if path.startswith("[") else f"{self._within}.{path}"

    def _composite(self, result: Result, text: str) -> None:
        result.add(text, v.invalid(self._within or v.NOWHERE, "", text))

    def _bad_type(self, result: Result, path: str, wanted: str, got: str) -> None:
        text = f"{path} in body must be of type {wanted}: {v.quote(got)}"
        result.add(text, v.type_invalid(self._field(path), got, text))

    def _bad_value(self, result: Result, path: str, value: Any, rule: str) -> None:
        text = f"{path} in body {rule}"
        result.add(text, v.invalid(self._field(path), value, text))

    # -- the walk

    def _ratcheted(self, schema: Schema, value: Any, path: str, old: Any) -> Result:
        result = self._check(schema, value, path, old)
        if result.errors and old is not UNRELATED and unchanged(schema, old, value):
            result.errors = {}
        return result

    def _check(self, schema: Schema, value: Any, path: str, old: Any) -> Result:
        result = Result()
        types = types_of(schema)
        format_ = schema.format if self._builtin else recognised(schema.type, schema.format)
        if value is None:
            if types and "null" not in types and not schema.nullable:
                self._bad_type(result, path, ",".join(types), "null")
            else:
                result.matches += 1
            self._check_enum(schema, value, path, result)
            return result
        if types or format_:
            self._check_type(types, format_, value, path, result)
            result.matches += 1
        self._check_junctors(schema, value, path, result)
        result.matches += 2
        if isinstance(value, str):
            self._check_string(schema, format_, value, path, result)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            self._check_number(schema, types, format_, value, path, result)
        elif isinstance(value, list):
            self._check_items(schema, value, path, old, result)
        self._check_enum(schema, value, path, result)
        result.matches += 1
        if isinstance(value, dict):
            self._check_object(schema, value, path, old, result)
            result.matches += 1
        result.matches += 1
        return result

    def _check_type(self, types: tuple[str, ...], format_: str, value: Any, path: str, result: Result) -> None:
        found, found_format = kind_of(value)
        whole = found == "number" and is_whole(value)
        if found in types or (found == "integer" and "number" in types) or (whole and "integer" in types):
            result.matches += 1
        elif format_ and not isinstance(value, (str, list)) and found_format != format_:
            self._bad_type(result, path, format_, found_format)
        elif types:
            self._bad_type(result, path, ",".join(types), found)

    def _check_string(self, schema: Schema, format_: str, value: str, path: str, result: Result) -> None:
        self._check_text(schema.raw, value, path, result)
        result.matches += 1
        check = string_check(format_) if format_ else None
        if check is None:
            return
        result.matches += 1
        if not check(value) and not (self._builtin and not value):
            text = f"{path} in body must be of type {format_}: {v.quote(value)}"
            result.add(text, v.type_invalid(self._field(path), value, text))

    def _check_text(self, raw: Mapping[str, Any], value: str, path: str, result: Result) -> None:
        longest, shortest, pattern = raw.get("maxLength"), raw.get("minLength"), raw.get("pattern")
        if longest is not None and len(value) > longest:
            text = f"{path} in body should be at most {longest} chars long"
            result.add(text, v.too_long(self._field(path), int(longest)))
        elif shortest is not None and len(value) < shortest:
            self._bad_value(result, path, value, f"should be at least {shortest} chars long")
        elif pattern:
            try:
                matched = search(pattern)(value)
            except PatternError as error:
                self._bad_value(result, path, value, f"should match '{pattern}, but pattern is invalid: {error}'")
                return
            if not matched:
                self._bad_value(result, path, value, f"should match '{pattern}'")

    def _check_number(
        self, schema: Schema, types: tuple[str, ...], format_: str, value: float, path: str, result: Result
    ) -> None:
        result.matches += 2
        single = types[0] if len(types) == 1 else ""
        if not in_range(value, single, format_):
            kind = f"type {single} with format {format_}" if format_ else f"type {single} (default format)"
            self._composite(result, f"Checked value must be of {kind} in {path}")
        raw = schema.raw
        factor, low, high = raw.get("multipleOf"), raw.get("minimum"), raw.get("maximum")
        if factor is not None and not is_multiple(value, factor):
            self._bad_value(result, path, value, f"should be a multiple of {v.number(factor)}")
        if low is not None:
            if raw.get("exclusiveMinimum") is True:
                if value <= low:
                    self._bad_value(result, path, value, f"should be greater than {v.number(low)}")
            elif value < low:
                self._bad_value(result, path, value, f"should be greater than or equal to {v.number(low)}")
        if high is not None:
            if raw.get("exclusiveMaximum") is True:
                if value >= high:
                    self._bad_value(result, path, value, f"should be less than {v.number(high)}")
            elif value > high:
                self._bad_value(result, path, value, f"should be less than or equal to {v.number(high)}")

    def _check_items(self, schema: Schema, value: list[Any], path: str, old: Any, result: Result) -> None:
        items = schema.items
        if items is not None:
            continued = correlate(schema, value, old)
            for index, item in enumerate(value):
                before = continued[index] if continued is not None else UNRELATED
                result.merge(self._ratcheted(items, item, f"{path}[{index}]", before))
        raw = schema.raw
        self._check_size(raw.get("minItems"), raw.get("maxItems"), len(value), "items", path, result)
        if raw.get("uniqueItems") and any(same(a, b) for i, a in enumerate(value) for b in value[:i]):
            self._bad_value(result, path, "", "shouldn't contain duplicates")
        result.matches += 2

    def _check_size(self, fewest: Any, most: Any, size: int, of: str, path: str, result: Result) -> None:
        if fewest is not None and size < fewest:
            self._bad_value(result, path, size, f"should have at least {fewest} {of}")
        if most is not None and size > most:
            result.add(
                f"{path} in body should have at most {most} {of}", v.too_many(self._field(path), size, int(most))
            )

    def _check_enum(self, schema: Schema, value: Any, path: str, result: Result) -> None:
        allowed = schema.raw.get("enum")
        if not allowed or (value is not None and any(same(value, a) for a in allowed)):
            return
        text = f"{path} in body should be one of [{' '.join(map(str, allowed))}]"
        result.add(text, v.not_supported(self._field(path), value, allowed))

    def _check_object(self, schema: Schema, value: dict[str, Any], path: str, old: Any, result: Result) -> None:
        raw = schema.raw
        self._check_size(raw.get("minProperties"), raw.get("maxProperties"), len(value), "properties", path, result)
        before = old if isinstance(old, dict) else {}
        closed, additional, properties = raw.get("additionalProperties") is False, schema.additional, schema.properties
        for key, item in value.items():
            child = properties.get(key)
            if child is not None:
                place = f"{path}.{key}" if path else key
            elif closed:
                text = f"{path}.{key} in body is a forbidden property"
                result.add(text, v.invalid(self._field(path), key, text))
                continue
            elif additional is not None:
                child, place = additional, f"{path}.{key}"
            else:
                continue
            # The two fields that say what the object is are never taken over: both sides were converted.
            continues = key in before and (path or key not in ("apiVersion", "kind"))
            result.merge(self._ratcheted(child, item, place, before[key] if continues else UNRELATED))
        for key in schema.required:
            if key not in value:
                result.add(f"{path}.{key} in body is required", v.required(self._field(f"{path}.{key}")))

    # -- allOf, anyOf, oneOf, not

    def _alternative(self, raw: Mapping[str, Any], schema: Schema, value: Any, path: str) -> Result:
        """Nothing is tolerated inside an alternative, or another one could be chosen for what is wrong with it."""
        return self._check(schema.beside(raw), value, path, UNRELATED)

    def _check_junctors(self, schema: Schema, value: Any, path: str, result: Result) -> None:
        raw = schema.raw
        if raw.get("anyOf"):
            self._check_any(schema, value, path, result)
        if raw.get("oneOf"):
            self._check_one(schema, value, path, result)
        if raw.get("allOf"):
            self._check_all(schema, value, path, result)
        if raw.get("not") is not None:
            if not self._alternative(raw["not"], schema, value, path).errors:
                self._composite(result, f"{v.quote(path)} must not validate the schema (not)")

    def _check_any(self, schema: Schema, value: Any, path: str, result: Result) -> None:
        best: Result | None = None
        for raw in schema.raw["anyOf"]:
            tried = self._alternative(raw, schema, value, path)
            if not tried.errors:
                result.merge(tried)
                return
            if best is None or tried.matches > best.matches:
                best = tried
        self._composite(result, f"{v.quote(path)} must validate at least one schema (anyOf)")
        if best is not None:
            result.merge(best)

    def _check_one(self, schema: Schema, value: Any, path: str, result: Result) -> None:
        best: Result | None = None
        valid: list[Result] = []
        for raw in schema.raw["oneOf"]:
            tried = self._alternative(raw, schema, value, path)
            if not tried.errors:
                valid.append(tried)
            elif best is None or tried.matches > best.matches:
                best = tried
        if len(valid) == 1:
            result.merge(valid[0])
            return
        found = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
        self._composite(result, f"{v.quote(path)} must validate one and only one schema (oneOf). {found}")
        if not valid and best is not None:
            result.merge(best)

    def _check_all(self, schema: Schema, value: Any, path: str, result: Result) -> None:
        tried = [self._alternative(raw, schema, value, path) for raw in schema.raw["allOf"]]
        for each in tried:
            result.merge(each)
        failed = sum(1 for each in tried if each.errors)
        if failed:
            none = ". None validated" if failed == len(tried) else ""
            self._composite(result, f"{v.quote(path)} must validate all the schemas (allOf){none}")
