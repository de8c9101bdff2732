"""values.schema.json of a chart and its subcharts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import jsonschema_rs
import orjson

from homeport.machinery.chart.error import ChartError
from homeport.machinery.chart.model import Chart, Json
from homeport.machinery.chart.schemacost import EndlessSchema, check_cost
from homeport.machinery.schema.near import near_field

_MOST_ERRORS: Final = 20


def check_schema(chart: Chart, values: Json) -> None:
    """Raises ChartError with everything that is wrong, chart by chart."""
    problems = list(_problems(chart, values))
    if problems:
        more = len(problems) - _MOST_ERRORS
        rest = [f"and {more} more"] if more > 0 else []
        listed = "\n".join(f"- {each}" for each in [*problems[:_MOST_ERRORS], *rest])
        raise ChartError(f"chart {chart.name}: the values do not match values.schema.json:\n{listed}")


def _problems(chart: Chart, values: Json) -> list[str]:
    found: list[str] = []
    if chart.schema is not None:
        found += _of_one(chart, values)
    for child in chart.charts:
        below = values.get(child.name)
        if isinstance(below, dict):
            found += _problems(child, below)
        elif below is not None:
            found.append(f"{child.path}: expected a map of values")
    return found


def _of_one(chart: Chart, values: Json) -> list[str]:
    place = f"{chart.path}/values.schema.json"
    try:
        schema = orjson.loads(chart.schema or b"")
    except orjson.JSONDecodeError as error:
        raise ChartError(f"{place}, line {error.lineno}: not valid JSON: {error.msg}") from None
    # The mask keeps values out of the messages: one may be a password.
    try:
        validator: Any = jsonschema_rs.validator_for(schema, retriever=_retrieve, mask="the value")
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise ChartError(f"{place}: not a valid JSON schema: {str(error).splitlines()[0]}") from None
    instance = _whole(values)
    try:
        check_cost(schema, instance)
    except EndlessSchema as error:
        raise ChartError(f"{place}: {error}") from None
    return [
        f"{chart.path}: values.{'.'.join(map(str, error.instance_path)) or '(all)'}: {error.message}"
        for error in validator.iter_errors(instance)
    ]


def schema_problems(schema: bytes, values: Json) -> list[tuple[str, str]]:
    """Paths below the values with what is wrong there. For an unknown field, the one that may have been meant.

    Raises ChartError if the schema itself can't be used.
    """
    try:
        read = orjson.loads(schema)
        validator: Any = jsonschema_rs.validator_for(read, retriever=_retrieve, mask="the value")
        instance = _whole(values)
        check_cost(read, instance)
    except orjson.JSONDecodeError as error:
        raise ChartError(f"values.schema.json, line {error.lineno}: not valid JSON: {error.msg}") from None
    except (ValueError, jsonschema_rs.ReferencingError, EndlessSchema) as error:
        raise ChartError(f"values.schema.json: {str(error).splitlines()[0]}") from None
    found: list[tuple[str, str]] = []
    for each in validator.iter_errors(instance):
        path = ".".join(map(str, each.instance_path))
        unknown = getattr(each.kind, "unexpected", None)
        if not unknown:
            found.append((path, each.message))
            continue
        place = _at(read, each.schema_path)
        for name in unknown:
            meant = near_field(place, str(name))
            known = ", ".join(sorted(place.get("properties") or ())) or "none"
            text = f'did you mean "{meant}"?' if meant else f"known fields: {known}"
            found.append((f"{path}.{name}" if path else str(name), f"unknown field; {text}"))
    return found[:_MOST_ERRORS]


def _at(schema: Any, path: Iterable[Any]) -> Mapping[str, Any]:
    """The part of the schema that an error came from."""
    for step in list(path)[:-1]:
        if isinstance(schema, Mapping):
            schema = schema.get(step)
        elif isinstance(schema, list) and isinstance(step, int) and step < len(schema):
            schema = schema[step]
    return schema if isinstance(schema, Mapping) else {}


def _retrieve(uri: str) -> Any:
    """Schemas elsewhere are not fetched: rendering does no I/O. Helm takes an unknown urn for one that allows all."""
    if uri.startswith("urn:"):
        return True
    raise ValueError(f"{uri} is not in the chart: only references inside of values.schema.json work")


def _whole(value: Any) -> Any:
    """5.0 is an integer to every schema."""
    if isinstance(value, dict):
        return {key: _whole(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_whole(below) for below in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 63:
        return int(value)
    return value
