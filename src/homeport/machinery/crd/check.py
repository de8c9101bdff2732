"""Everything that an API server refuses in a CustomResourceDefinition.

Like Kubernetes, this first lifts what all versions have in common (schema, subresources, columns, selectable fields) to
the top: so an error in the only version of a definition is reported at `spec.validation...`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from homeport.machinery.crd.conversion import conversion_violations
from homeport.machinery.crd.openapi import openapi_violations
from homeport.machinery.crd.structural import structural_violations
from homeport.machinery.crd.value import default_violations
from homeport.machinery.crd.version import (
    column_violations,
    deprecation_violations,
    selectable_violations,
    subresource_violations,
)
from homeport.machinery.schema import violation as v
from homeport.machinery.schema.name import dns_label_1035, dns_subdomain
from homeport.machinery.schema.violation import Violation

Json = dict[str, Any]
Raw = Mapping[str, Any]

_APPROVAL: Final = "api-approved.kubernetes.io"
_LIFTED: Final = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
# With a status subresource these are all that may stand at the root, so that `status` can be checked on its own.
_AT_ROOT: Final = (
    "description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength",
    "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items", "properties",
    "externalDocs", "example", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
)  # fmt: skip
_AT_ROOT_SHOWN: Final = " ".join(
    "X" + "".join(part.capitalize() for part in name.removeprefix("x-kubernetes-").split("-"))
    if name.startswith("x-")
    else name[0].upper() + name[1:]
    for name in _AT_ROOT
)

# Schemas that this process found sound, by digest: to look at a large one takes longer than all else in a write.
_ACCEPTED: Final[dict[bytes, None]] = {}
_ACCEPTED_AT_MOST: Final = 4096


def check(crd: Json, old: Json | None = None) -> list[Violation]:
    """What is wrong with a definition, or with its change from `old`. Expects it defaulted (see default.py)."""
    spec = crd.get("spec") or {}
    found: list[Violation] = []
    if old is None:
        found += _name(crd, spec)
    found += _spec(spec, (old or {}).get("spec"))
    if old is not None:
        found += _immutable(spec, old)
    found += _names((crd.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames")
    found += _stored(crd, spec)
    found += _approval(crd, spec, old)
    if spec.get("preserveUnknownFields") and not ((old or {}).get("spec") or {}).get("preserveUnknownFields"):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        found.append(v.invalid("spec.preserveUnknownFields", True, detail))
    return found


def _name(crd: Json, spec: Raw) -> Iterator[Violation]:
    name = (crd.get("metadata") or {}).get("name") or ""
    names = spec.get("names") or {}
    if name and name != f"{names.get('plural', '')}.{spec.get('group', '')}":
        yield v.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _spec(spec: Raw, old: Raw | None) -> Iterator[Violation]:
    group = spec.get("group") or ""
    if not group:
        yield v.required("spec.group")
    elif wrong := dns_subdomain(group):
        yield v.invalid("spec.group", group, ",".join(wrong))
    elif "." not in group:
        yield v.invalid("spec.group", group, "should be a domain with at least one dot")
    scope = spec.get("scope") or ""
    if not scope:
        yield v.required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield v.not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    yield from _versions(spec, old)
    yield from _required_names(spec.get("names") or {})
    yield from _names(spec.get("names") or {}, "spec.names")
    yield from _lifted_parts(spec, old)
    yield from conversion_violations(spec.get("conversion"), bool(spec.get("preserveUnknownFields")))


def _versions(spec: Raw, old: Raw | None) -> Iterator[Violation]:
    versions = spec.get("versions") or []
    lifted = _lifted(versions)
    before = _schemas(old)
    shown = _shown(versions, lifted)
    if "schema" not in lifted:
        for index, version in enumerate(versions):
            if not (version.get("schema") or {}).get("openAPIV3Schema"):
                yield v.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    elif not (lifted["schema"] or {}).get("openAPIV3Schema"):
        yield from (v.required(f"spec.versions[{i}].schema.openAPIV3Schema") for i in range(len(versions)))
    for index, version in enumerate(versions):
        place, name = f"spec.versions[{index}]", version.get("name") or ""
        if wrong := dns_label_1035(name):
            yield v.invalid(f"{place}.name", name, ",".join(wrong))
        yield from deprecation_violations(version, place)
        if "schema" not in lifted:
            yield from _schema(version, f"{place}.schema", unchanged=before.get(name) == _schema_of(version))
        if "subresources" not in lifted:
            yield from subresource_violations(version.get("subresources"), f"{place}.subresources")
        if "additionalPrinterColumns" not in lifted:
            yield from column_violations(version, f"{place}.additionalPrinterColumns")
        if "selectableFields" not in lifted:
            yield from selectable_violations(version, f"{place}.selectableFields")
    if versions and (wrong := dns_label_1035(versions[0].get("name") or "")):
        yield v.invalid("spec.version", versions[0].get("name") or "", ",".join(wrong))
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        yield v.invalid("spec.versions", shown, "must contain unique version names")
    if sum(1 for version in versions if version.get("storage")) != 1:
        detail = "must have exactly one version marked as storage version"
        yield v.invalid("spec.versions", shown, detail)


def _lifted_parts(spec: Raw, old: Raw | None) -> Iterator[Violation]:
    versions = spec.get("versions") or []
    lifted = _lifted(versions)
    if not versions:
        return
    first = versions[0]
    if "schema" in lifted:
        unchanged = _schema_of(first) in _schemas(old).values()
        any_status = any("status" in (version.get("subresources") or {}) for version in versions)
        yield from _schema(first, "spec.validation", unchanged=unchanged, any_status=any_status)
    if "subresources" in lifted:
        yield from subresource_violations(lifted["subresources"], "spec.subresources")
    if "additionalPrinterColumns" in lifted:
        yield from column_violations(first, "spec.additionalPrinterColumns")
    if "selectableFields" in lifted:
        yield from selectable_violations(first, "spec.selectableFields")


def _lifted(versions: list[Json]) -> dict[str, Any]:
    if not versions:
        return {}
    return {
        key: versions[0].get(key)
        for key in _LIFTED
        if versions[0].get(key) is not None and all(version.get(key) == versions[0].get(key) for version in versions)
    }


def _schema_of(version: Raw) -> Any:
    return (version.get("schema") or {}).get("openAPIV3Schema")


def _schemas(old: Raw | None) -> dict[str, Any]:
    return {each.get("name", ""): _schema_of(each) for each in (old or {}).get("versions") or ()}


def _shown(versions: list[Json], lifted: Mapping[str, Any]) -> v.Verbatim:
    """Versions as the server prints them in messages: Go's own field names, without what was lifted."""
    fields = {
        "Schema": "schema",
        "Subresources": "subresources",
        "AdditionalPrinterColumns": "additionalPrinterColumns",
        "SelectableFields": "selectableFields",
    }
    shown = [
        {
            "Name": version.get("name", ""),
            "Served": bool(version.get("served")),
            "Storage": bool(version.get("storage")),
            "Deprecated": bool(version.get("deprecated")),
            "DeprecationWarning": version.get("deprecationWarning"),
            **{name: None if key in lifted else version.get(key) for name, key in fields.items()},
        }
        for version in versions
    ]
    return v.Verbatim(orjson.dumps(shown).decode())


def _schema(version: Raw, path: str, *, unchanged: bool, any_status: bool = False) -> Iterator[Violation]:
    """A schema that was accepted before is not looked at again."""
    schema, place = _schema_of(version), f"{path}.openAPIV3Schema"
    if schema is None or unchanged:
        return
    has_status = any_status or "status" in (version.get("subresources") or {})
    digest = _digest(schema, has_status=has_status)
    if digest in _ACCEPTED:
        return
    violations = list(_schema_violations(schema, place, has_status=has_status))
    if not violations:
        _remember(digest)
    yield from violations


def trust(crd: Raw) -> None:
    """Takes the schemas of a definition for sound without a look, for one that was checked before it was released."""
    versions = crd["spec"]["versions"]
    with_status = ["status" in (version.get("subresources") or {}) for version in versions]
    for version, own in zip(versions, with_status, strict=True):
        for has_status in {own, any(with_status)}:  # of a schema that all versions have in common, any counts
            _remember(_digest(_schema_of(version), has_status=has_status))


def _digest(schema: Raw | None, *, has_status: bool) -> bytes:
    return blake2b(orjson.dumps([has_status, schema]), digest_size=16).digest()


def _remember(digest: bytes) -> None:
    if len(_ACCEPTED) >= _ACCEPTED_AT_MOST:
        _ACCEPTED.pop(next(iter(_ACCEPTED)))
    _ACCEPTED[digest] = None


def _schema_violations(schema: Raw, place: str, *, has_status: bool) -> Iterator[Violation]:
    found: list[Violation] = []
    if has_status:
        found += _root_with_status(schema, place)
    if schema.get("nullable"):
        found.append(v.forbidden(f"{place}.nullable", "nullable cannot be true at the root"))
    not_structural = structural_violations(schema, place)
    found += not_structural or default_violations(schema, place)
    found += openapi_violations(schema, place)
    yield from found
    if not found:
        yield from _rule_violations(schema, place)


def _root_with_status(schema: Raw, place: str) -> Iterator[Violation]:
    for key, value in schema.items():
        if value in (None, False, "", [], {}):
            continue
        if key == "type" and value != "object":
            detail = (
                'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            )
            yield v.invalid(f"{place}.type", value, detail)
            return
        if key not in _AT_ROOT:
            detail = (
                f"only [{_AT_ROOT_SHOWN}] fields are allowed at the root of the schema "
                "if the status subresource is enabled"
            )
            yield v.invalid(place, schema, detail)
            return


def _rule_violations(schema: Raw, place: str) -> Iterator[Violation]:
    from homeport.machinery.cel import compile_rules

    _, problems = compile_rules(schema, path=place)
    for problem in problems:
        if "exceed" in problem.message and "cost" in problem.message:
            yield v.forbidden(problem.path, problem.message)
            continue
        rule, part = _rule_at(schema, problem.path.removeprefix(place))
        if problem.message.startswith("oldSelf cannot be used"):
            yield v.invalid(problem.path, rule.get("rule"), problem.message)
        elif part in ("fieldPath", "optionalOldSelf"):
            yield v.invalid(problem.path, rule.get(part), problem.message)
        else:
            yield v.invalid(problem.path, _printed(rule), problem.message)


def _rule_at(schema: Any, path: str) -> tuple[Raw, str]:
    """The rule that a path below the schema leads to, and which part of it."""
    head, _, rest = path.partition(".x-kubernetes-validations[")
    index, _, part = rest.partition("]")
    for step in head.replace("properties[", "properties\0").replace("]", "").split("."):
        key, _, name = step.partition("\0")
        schema = (schema.get(key) if key else schema) if isinstance(schema, Mapping) else None
        schema = schema.get(name) if name and isinstance(schema, Mapping) else schema
    rules = schema.get("x-kubernetes-validations") if isinstance(schema, Mapping) else None
    if not rules or not index.isdigit() or int(index) >= len(rules):
        return {}, ""
    return rules[int(index)], part.removeprefix(".")


def _printed(rule: Raw) -> v.Verbatim:
    shown = {"Rule": "rule", "Message": "message", "MessageExpression": "messageExpression"}
    printed = {
        **{name: rule.get(key) or "" for name, key in shown.items()},
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath") or "",
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    return v.Verbatim(orjson.dumps(printed).decode())


def _required_names(names: Raw) -> Iterator[Violation]:
    for key in ("plural", "singular", "kind", "listKind"):
        if not names.get(key):
            yield v.required(f"spec.names.{key}")


def _names(names: Raw, path: str) -> Iterator[Violation]:
    for key in ("plural", "singular"):
        if names.get(key) and (wrong := dns_label_1035(names[key])):
            yield v.invalid(f"{path}.{key}", names[key], ",".join(wrong))
    for key in ("kind", "listKind"):
        if names.get(key) and (wrong := dns_label_1035(names[key].lower())):
            detail = "may have mixed case, but should otherwise match: " + ",".join(wrong)
            yield v.invalid(f"{path}.{key}", names[key], detail)
    for index, short in enumerate(names.get("shortNames") or ()):
        if wrong := dns_label_1035(short):
            yield v.invalid(f"{path}.shortNames[{index}]", short, ",".join(wrong))
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield v.invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same")
    for index, category in enumerate(names.get("categories") or ()):
        if wrong := dns_label_1035(category):
            yield v.invalid(f"{path}.categories[{index}]", category, ",".join(wrong))


def _immutable(spec: Raw, old: Raw) -> Iterator[Violation]:
    before, names, old_names = old["spec"], spec.get("names") or {}, old["spec"].get("names") or {}
    conditions = (old.get("status") or {}).get("conditions") or ()
    if any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions):
        if spec.get("scope") != before.get("scope"):
            yield v.invalid("spec.scope", spec.get("scope"), "field is immutable")
        if names.get("kind") != old_names.get("kind"):
            yield v.invalid("spec.names.kind", names.get("kind"), "field is immutable")
    if spec.get("group") != before.get("group"):
        yield v.invalid("spec.group", spec.get("group"), "field is immutable")
    if names.get("plural") != old_names.get("plural"):
        yield v.invalid("spec.names.plural", names.get("plural"), "field is immutable")


def _stored(crd: Json, spec: Raw) -> Iterator[Violation]:
    stored = (crd.get("status") or {}).get("storedVersions") or []
    if not stored:
        yield v.invalid("status.storedVersions", None, "must have at least one stored version")
        return
    versions = spec.get("versions") or []
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            yield v.invalid("status.storedVersions", stored, f"must have the storage version {version.get('name')}")
    names = {version.get("name") for version in versions}
    for index, name in enumerate(stored):
        if name not in names:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield v.invalid(f"status.storedVersions[{index}]", name, detail)


def _approval(crd: Json, spec: Raw, old: Json | None) -> Iterator[Violation]:
    """Groups of the Kubernetes community need a word on who approved the API."""
    group = spec.get("group") or ""
    if not (group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))):
        return
    said = _annotation(crd)
    if old is not None and _approved(_annotation(old)) == _approved(said):
        return
    field, see = f"metadata.annotations[{_APPROVAL}]", "see https://github.com/kubernetes/enhancements/pull/1111"
    if not said:
        yield v.required(field, f'protected groups must have approval annotation "{_APPROVAL}", {see}')
    elif not _approved(said):
        detail = (
            f'protected groups must have approval annotation "{_APPROVAL}" with either a URL or a reason starting with '
            f'"unapproved", {see}'
        )
        yield v.invalid(field, said, detail)


def _annotation(crd: Json) -> str:
    return ((crd.get("metadata") or {}).get("annotations") or {}).get(_APPROVAL) or ""


def _approved(text: str) -> str:
    if text.startswith("unapproved"):
        return "bypassed"
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    return "approved" if parts.scheme and parts.netloc else ""
