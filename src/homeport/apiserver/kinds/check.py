"""What several kinds check alike, and the API server's wording of what is wrong with a field."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from homeport.apiserver.name import dns_label, dns_subdomain, label_key, label_value
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

IMMUTABLE = "field is immutable"
PROTOCOLS = ("SCTP", "TCP", "UDP")
MAX_INT32 = 2**31 - 1
_PORT_NAME = re.compile(r"[-a-z0-9]+").fullmatch
_PERCENT = re.compile(r"[0-9]+%").fullmatch
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+").fullmatch


# -- causes ----------------------------------------------------------------------------------------------------


class Struct(dict[str, Any]):
    """A value whose fields messages show in the order given; maps are shown sorted."""


def shown(value: object) -> str:
    """A value as messages show it: text in quotes, everything else as JSON."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Struct):
        return orjson.dumps(value).decode()
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def required(field: str, detail: str = "") -> Cause:
    return Cause.required(field, detail) if detail else Cause("FieldValueRequired", "Required value", field)


def invalid(field: str, value: object, detail: str) -> Cause:
    text = f"Invalid value: {shown(value)}: {detail}" if detail else f"Invalid value: {shown(value)}"
    return Cause("FieldValueInvalid", text, field)


def forbidden(field: str, detail: str) -> Cause:
    return Cause.forbidden(field, detail)


def duplicate(field: str, value: object) -> Cause:
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", field)


def missing(field: str, value: object) -> Cause:
    """The value names something that is not there."""
    return Cause("FieldValueNotFound", f"Not found: {shown(value)}", field)


def unsupported(field: str, value: object, choices: Iterable[str]) -> Cause:
    listed = ", ".join(shown(choice) for choice in choices)
    return Cause("FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {listed}", field)


def too_long(field: str, limit: int, unit: str = "bytes") -> Cause:
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} {unit}", field)


def too_many(field: str, count: int, limit: int) -> Cause:
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} items", field)


# -- single values ---------------------------------------------------------------------------------------------


def named(field: str, value: str, rule: Callable[[str], str | None] = dns_subdomain) -> Iterator[Cause]:
    wrong = rule(value)
    if wrong:
        yield invalid(field, value, wrong)


def one_of(field: str, value: str, choices: Sequence[str]) -> Iterator[Cause]:
    """A choice that must be made."""
    if not value:
        yield required(field)
    elif value not in choices:
        yield unsupported(field, value, choices)


def not_negative(field: str, value: int | None) -> Iterator[Cause]:
    if value is not None and value < 0:
        yield invalid(field, value, "must be greater than or equal to 0")


def within(field: str, value: int, low: int, high: int) -> Iterator[Cause]:
    if not low <= value <= high:
        yield invalid(field, value, f"must be between {low} and {high}, inclusive")


def port_number(field: str, value: int) -> Iterator[Cause]:
    return within(field, value, 1, 65535)


def port_name_errors(name: str) -> Iterator[str]:
    if len(name) > 15:
        yield "must be no more than 15 characters"
    if not _PORT_NAME(name):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", name):
        yield "must contain at least one letter (a-z)"
    if "--" in name:
        yield "must not contain consecutive hyphens"
    if name and (name[0] == "-" or name[-1] == "-"):
        yield "must not begin or end with a hyphen"


def port(field: str, value: int | str) -> Iterator[Cause]:
    """A port's number or name."""
    if isinstance(value, int):
        yield from port_number(field, value)
    else:
        yield from (invalid(field, value, wrong) for wrong in port_name_errors(value))


def dotless_label(name: str) -> str | None:
    """What is wrong with a name that becomes a DNS label."""
    return "must not contain dots" if "." in name else dns_label(name)


def config_key(key: str) -> str | None:
    """What is wrong with a key of a ConfigMap or Secret."""
    if len(key) > 253:
        return "must be no more than 253 bytes"
    if not _CONFIG_KEY(key):
        return (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    if key == ".":
        return "must not be '.'"
    if key == "..":
        return "must not be '..'"
    if key.startswith(".."):
        return "must not start with '..'"
    return None


def ip_address(field: str, value: str) -> Iterator[Cause]:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        yield invalid(field, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def cidr(field: str, value: str) -> Iterator[Cause]:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        known = False
    else:
        known = "/" in value
    if not known:
        yield invalid(field, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")


def share(field: str, value: int | str | None) -> Iterator[Cause]:
    """A number of Pods, or a percentage of them."""
    if isinstance(value, str):
        if not _PERCENT(value):
            detail = (
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
                "regex used for validation is '[0-9]+%')"
            )
            yield invalid(field, value, detail)
    else:
        yield from not_negative(field, value)


def at_most_all(field: str, value: int | str | None) -> Iterator[Cause]:
    if isinstance(value, str) and _PERCENT(value) and int(value[:-1]) > 100:
        yield invalid(field, value, "must not be greater than 100%")


# -- label selectors -------------------------------------------------------------------------------------------


def labels(field: str, value: Mapping[str, str] | None) -> Iterator[Cause]:
    for key, item in (value or {}).items():
        yield from named(field, key, label_key)
        yield from named(field, item, label_value)


def label_selector(field: str, selector: Json | None) -> Iterator[Cause]:
    if not selector:
        return
    for key, value in (selector.get("matchLabels") or {}).items():
        yield from named(f"{field}.matchLabels", key, label_key)
        yield from named(f"{field}.matchLabels", value, label_value)
    for i, rule in enumerate(selector.get("matchExpressions") or ()):
        yield from _expression(f"{field}.matchExpressions[{i}]", rule)


def operands(field: str, rule: Json, *, comparing: bool = False) -> Iterator[Cause]:
    """Whether an expression has the values that its operator needs. `comparing`: Gt and Lt are operators as well."""
    operator, values = rule.get("operator", ""), rule.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(f"{field}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif comparing and operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield required(f"{field}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid(f"{field}.operator", operator, "not a valid selector operator")


def _expression(field: str, rule: Json) -> Iterator[Cause]:
    yield from operands(field, rule)
    yield from named(f"{field}.key", rule.get("key", ""), label_key)
    for i, value in enumerate(rule.get("values") or ()):
        if wrong := label_value(value):
            yield invalid(f"{field}.values[{i}]", value, wrong)


def selector_is_empty(selector: Json | None) -> bool:
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def immutable(field: str, new: object, old: object) -> Iterator[Cause]:
    if new != old:
        yield invalid(field, new, IMMUTABLE)


__all__ = [
    "IMMUTABLE",
    "MAX_INT32",
    "PROTOCOLS",
    "Struct",
    "at_most_all",
    "cidr",
    "config_key",
    "dns_label",
    "dns_subdomain",
    "dotless_label",
    "duplicate",
    "forbidden",
    "immutable",
    "invalid",
    "ip_address",
    "label_key",
    "label_selector",
    "label_value",
    "labels",
    "missing",
    "named",
    "not_negative",
    "one_of",
    "port",
    "port_name_errors",
    "port_number",
    "required",
    "selector_is_empty",
    "share",
    "shown",
    "too_long",
    "too_many",
    "unsupported",
    "within",
]
