"""The quick yes: OpenAPI v3 as Kubernetes means it, translated to JSON Schema for a compiled validator.

The translation may refuse more than Kubernetes does, never less: what it refuses is looked at again by explain.py,
which has the last word. Under `not` and `oneOf`, where a refusal turns into an acceptance, it is exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import jsonschema_rs

from homeport.machinery.schema.format import recognised, string_check
from homeport.machinery.schema.pattern import PatternError, search
from homeport.machinery.schema.value import FLOAT32_MAX, INT32, INT64

_REF_PREFIX: Final = "#/components/schemas/"
_COPIED: Final = (
    "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "required",
    "multipleOf",
)  # fmt: skip

# Dates that are right beyond doubt; 29 February and odd spellings are left to the second look.
_PLAIN_DATE_TIME: Final = (
    "^[1-9][0-9]{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})$"
)

# Patterns made of these parts only mean the same to Go and to the validator's own engine.
_PLAIN_PATTERN: Final = re.compile(
    r"""(?:
        [A-Za-z0-9_/:@,;=\ !"'#%<>~&`-]                         # literals
      | \\[.\-/\\+*?()\[\]{}|^$dDw]                             # escapes
      | \[\^?(?:[A-Za-z0-9_/:@,;=.+*?(){}|$\ !"'#%<>`-]|\\[.\-/\\+*?()\[\]{}|^$dw])+\]
      | \(\?: | \( | \) | [.^$|?*+] | \{[0-9]+(?:,[0-9]*)?\}
    )*""",
    re.VERBOSE | re.ASCII,
)


class Translator:
    """One schema, and the definitions that it reaches."""

    def __init__(self, definitions: Mapping[str, Any] | None, *, builtin: bool) -> None:
        self._definitions = definitions
        self._builtin = builtin
        self._reached: dict[str, Any] = {}
        self.formats: dict[str, Callable[[str], bool]] = {}

    def document(self, raw: Mapping[str, Any], meta: Mapping[str, Any] | None) -> dict[str, Any]:
        document = self.translate(raw)
        if meta is not None:
            document = {"allOf": [document, {"properties": {"metadata": self.translate(meta)}}]}
        if self._reached:
            document = {"allOf": [document], "components": {"schemas": self._reached}}
        return document

    def translate(self, raw: Mapping[str, Any], exact: bool = False) -> dict[str, Any]:
        if "$ref" in raw:
            return self._refer(raw["$ref"])
        out: dict[str, Any] = {key: raw[key] for key in _COPIED if raw.get(key) is not None}
        more: list[dict[str, Any]] = []
        types = self._types(raw)
        if types:
            out["type"] = [*types, "null"] if raw.get("nullable") else list(types)
        if raw.get("enum"):
            out["enum"] = [value for value in raw["enum"] if value is not None]
        self._bounds(raw, out)
        if raw.get("pattern"):
            more.append(self._pattern(raw["pattern"], exact))
        self._format(raw, exact, more)
        self._children(raw, exact, out)
        self._junctors(raw, exact, out, more)
        if more:
            out["allOf"] = more
        return out

    def _refer(self, ref: str) -> dict[str, Any]:
        name = ref.removeprefix(_REF_PREFIX)
        if name not in self._reached:
            if self._definitions is None or name not in self._definitions:
                raise ValueError(f"schema reference {ref!r} leads nowhere")
            self._reached[name] = {}
            self._reached[name] = self.translate(self._definitions[name])
        return {"$ref": f"{_REF_PREFIX}{name}"}

    def _types(self, raw: Mapping[str, Any]) -> tuple[str, ...]:
        if raw.get("x-kubernetes-int-or-string") or raw.get("format") == "int-or-string":
            return ("integer", "string")
        if raw.get("format") == "quantity":
            return ("string", "number")
        return (raw["type"],) if raw.get("type") else ()

    def _bounds(self, raw: Mapping[str, Any], out: dict[str, Any]) -> None:
        low, high = raw.get("minimum"), raw.get("maximum")
        if low is not None:
            out["exclusiveMinimum" if raw.get("exclusiveMinimum") is True else "minimum"] = low
        if high is not None:
            out["exclusiveMaximum" if raw.get("exclusiveMaximum") is True else "maximum"] = high
        format_, type_ = raw.get("format"), raw.get("type")
        if type_ == "integer" or "integer" in self._types(raw):
            least, most = INT32 if format_ == "int32" else INT64
        elif type_ == "number" and format_ == "float":
            least, most = -FLOAT32_MAX, FLOAT32_MAX  # type: ignore[assignment]
        else:
            return
        out["minimum"] = max(out.get("minimum", least), least)
        out["maximum"] = min(out.get("maximum", most), most)

    def _pattern(self, pattern: str, exact: bool) -> dict[str, Any]:
        try:
            found = search(pattern)
        except PatternError:
            return {"type": ["null", "boolean", "number", "array", "object"]}
        if not exact and _PLAIN_PATTERN.fullmatch(pattern):
            return {"pattern": pattern}
        name = f"pattern {pattern}"
        self.formats[name] = lambda text: found(text) is not None
        return {"format": name}

    def _format(self, raw: Mapping[str, Any], exact: bool, more: list[dict[str, Any]]) -> None:
        type_ = "" if raw.get("x-kubernetes-int-or-string") else raw.get("type", "")
        format_ = recognised(type_, raw.get("format", "")).replace("-", "")
        check = string_check(format_) if type_ in ("", "string") else None
        if not format_ or check is None or format_ == "password":
            return
        if format_ == "datetime" and not exact:
            more.append({"pattern": _PLAIN_DATE_TIME})
            return
        name = f"format {format_}"
        checked = check
        # Go writes empty bytes as an empty string.
        self.formats[name] = (lambda text: not text or checked(text)) if self._builtin else checked
        more.append({"format": name})

    def _children(self, raw: Mapping[str, Any], exact: bool, out: dict[str, Any]) -> None:
        if raw.get("properties"):
            out["properties"] = {name: self.translate(child, exact) for name, child in raw["properties"].items()}
        rest = raw.get("additionalProperties")
        if isinstance(rest, Mapping):
            out["additionalProperties"] = self.translate(rest, exact)
        elif rest is False:
            out["additionalProperties"] = False
        if isinstance(raw.get("items"), Mapping):
            out["items"] = self.translate(raw["items"], exact)

    def _junctors(self, raw: Mapping[str, Any], exact: bool, out: dict[str, Any], more: list[dict[str, Any]]) -> None:
        more.extend(self.translate(each, exact) for each in raw.get("allOf") or ())
        if raw.get("anyOf"):
            out["anyOf"] = [self.translate(each, exact) for each in raw["anyOf"]]
        if raw.get("oneOf"):
            out["oneOf"] = [self.translate(each, True) for each in raw["oneOf"]]
        if raw.get("not") is not None:
            out["not"] = self.translate(raw["not"], True)
        if raw.get("nullable") and (more or out.keys() & {"anyOf", "oneOf", "not", "enum"}):
            # Kubernetes looks only at type and enum of a null.
            more.extend({key: out.pop(key)} for key in ("anyOf", "oneOf", "not") if key in out)
            more[:] = [{"anyOf": [{"type": "null"}, each]} for each in more]


def compile_fast(
    raw: Mapping[str, Any],
    *,
    definitions: Mapping[str, Any] | None = None,
    builtin: bool = False,
    meta: Mapping[str, Any] | None = None,
) -> Callable[[Any], bool]:
    """A function that is true for the values that are valid without doubt."""
    translator = Translator(definitions, builtin=builtin)
    document = translator.document(raw, meta)
    validator = jsonschema_rs.Draft202012Validator(document, formats=translator.formats, validate_formats=True)
    is_valid: Callable[[Any], bool] = validator.is_valid
    return is_valid
