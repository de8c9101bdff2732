"""toYaml, fromJson and their like. Those that read give an error as a value, as Helm's do."""

from __future__ import annotations

from typing import Any, Final

import orjson

from homeport.machinery.chart.function.yamltext import must_to_yaml, to_yaml, to_yaml_pretty
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.function import Function, functions
from homeport.machinery.gotemplate.sprig.conversion import to_int64
from homeport.machinery.gotemplate.sprig.encoding import floats, must_json, to_json
from homeport.machinery.gotemplate.sprig.mapping import dig
from homeport.machinery.gotemplate.value import Int64, NilList, NilMap, octets, type_of
from homeport.machinery.yaml import YamlError, load_first


def from_yaml(text: str) -> dict[str, Any]:
    try:
        found = load_first(octets(text))
    except YamlError as wrong:
        return {"Error": str(wrong)}
    return _map(found) if found is not None else {}


def from_yaml_array(text: str) -> list[Any]:
    try:
        found = load_first(octets(text))
    except YamlError as wrong:
        return [str(wrong)]
    return _list(found) if found is not None else []


def from_json(text: str) -> dict[str, Any]:
    try:
        return _map(orjson.loads(octets(text)))
    except orjson.JSONDecodeError as wrong:
        return {"Error": wrong.msg}


def from_json_array(text: str) -> list[Any]:
    try:
        return _list(orjson.loads(octets(text)))
    except orjson.JSONDecodeError as wrong:
        return [wrong.msg]


def _map(found: Any) -> dict[str, Any]:
    if found is None:
        return NilMap()
    if isinstance(found, dict):
        made: dict[str, Any] = floats(found)
        return made
    return {"Error": f"cannot unmarshal {_json_kind(found)} into a value of type map[string]interface {{}}"}


def _list(found: Any) -> list[Any]:
    if found is None:
        return NilList()
    if isinstance(found, list):
        made: list[Any] = floats(found)
        return made
    return [f"cannot unmarshal {_json_kind(found)} into a value of type []interface {{}}"]


def _whole(value: object) -> object:
    """Helm's library reads "12.0" as a whole number, but not "12.7" and not "12."."""
    if isinstance(value, str) and "." in value:
        head, _, tail = value.rpartition(".")
        return head if tail and not tail.strip("0") else "0"
    return value


def _dig(*given: object) -> Any:
    """Sprig's function refuses maps of a named type, as .Values is one."""
    if given and isinstance(given[-1], dict) and type_of(given[-1]) != "map[string]interface {}":
        raise CallError(f"expected map[string]interface {{}}, found {type_of(given[-1])}: use .Values.AsMap")
    return dig(*given)


def _json_kind(value: Any) -> str:
    kinds = {"map[string]interface {}": "object", "[]interface {}": "array", "int": "number", "float64": "number"}
    return kinds.get(type_of(value), type_of(value))


FUNCTIONS: Final[dict[str, Function]] = functions(
    {
        "toYaml": ("any", to_yaml),
        "toYamlPretty": ("any", to_yaml_pretty),
        "fromYaml": ("string", from_yaml),
        "fromYamlArray": ("string", from_yaml_array),
        "toJson": ("any", to_json),
        "fromJson": ("string", from_json),
        "fromJsonArray": ("string", from_json_array),
        "dig": ("...any", _dig),
        "getHostByName": ("string", lambda _: ""),  # as helm without --enable-dns
        "int": ("any", lambda value: to_int64(_whole(value))),
        "int64": ("any", lambda value: Int64(to_int64(_whole(value)))),
    }
)
NEWER: Final[dict[str, Function]] = functions({"mustToYaml": ("any", must_to_yaml), "mustToJson": ("any", must_json)})
