"""Files to a chart: Chart.yaml, requirements.yaml, values, templates, and the charts below charts/."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from homeport.machinery.chart.archive import BOM, LARGEST_CHART, unpack
from homeport.machinery.chart.error import ChartError, shallow
from homeport.machinery.chart.model import Chart, Dependency, Maintainer, Metadata, as_text
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.sprig.encoding import floats
from homeport.machinery.gotemplate.sprig.semver import parse
from homeport.machinery.gotemplate.value import StringMap, Strings
from homeport.machinery.yaml import YamlError, load_each, load_first

_DEEPEST: Final = 20  # charts inside of charts
_ALIAS: Final = re.compile(r"[a-zA-Z0-9_-]+")
_SPECIAL: Final = {"api_version": "apiVersion", "app_version": "appVersion", "kube_version": "kubeVersion"}
_NAMES: Final = {each.name: _SPECIAL.get(each.name, each.name) for each in fields(Metadata)}
_TEXTS: Final = ("name", "home", "version", "description", "icon", "api_version", "condition", "tags", "app_version",
                 "kube_version", "type")  # fmt: skip
_DEPENDENCY_TEXTS: Final = ("name", "version", "repository", "condition", "alias")


@shallow
def load_chart(files: Mapping[str, bytes]) -> Chart:
    """The chart made of these files, which are named by their paths below the chart's root. Raises ChartError."""
    return _load(files, "", 0, _Room())


@dataclass(slots=True)
class _Room:
    """What all archives inside of a chart together may still unpack to."""

    left: int = LARGEST_CHART


def _load(files: Mapping[str, bytes], where: str, depth: int, room: _Room) -> Chart:
    if depth > _DEEPEST:
        raise ChartError(f"chart {where}: charts contain each other more than {_DEEPEST} times")
    if "Chart.yaml" not in files:
        raise ChartError(f"chart {where or 'folder'}: Chart.yaml is missing; is this the chart's own folder?")
    metadata = Metadata()
    _read_metadata(metadata, files["Chart.yaml"].removeprefix(BOM), f"{where}Chart.yaml")
    metadata.api_version = metadata.api_version or "v1"
    chart = Chart(metadata)
    below: dict[str, dict[str, bytes]] = {}
    for path, whole in files.items():
        content = whole.removeprefix(BOM)
        _check_path(path, where)
        if path.startswith("charts/") and not path.endswith(".prov"):
            name, _, rest = path.removeprefix("charts/").partition("/")
            below.setdefault(name, {})[rest] = content
        elif path != "Chart.yaml":
            _add(chart, path, content, where)
    _check(metadata, f"{where}Chart.yaml")
    for name in sorted(below):
        if name[0] not in "_.":
            chart.charts.append(_child(below[name], name, f"{where}charts/{name}/", depth, room))
    return chart


def _check_path(path: str, where: str) -> None:
    """A release records the paths in JSON, which has no place for other bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise ChartError(f"chart {where or 'folder'}: the name of file {path!r} is not UTF-8: rename it") from None


def _child(files: dict[str, bytes], name: str, where: str, depth: int, room: _Room) -> Chart:
    if name.endswith(".tgz"):
        if "" not in files:
            raise ChartError(f"chart {where}: a folder has the name of an archive; rename it")
        try:
            files = unpack(files[""], room.left)
        except ChartError as error:
            raise ChartError(f"{where.removesuffix('/')}: {error}") from None
        room.left -= sum(map(len, files.values()))
    return _load({path: content for path, content in files.items() if path}, where, depth + 1, room)


def _add(chart: Chart, path: str, content: bytes, where: str) -> None:
    old = chart.metadata.api_version == "v1"
    if path in ("Chart.lock", "requirements.lock"):
        found = _yaml(content, f"{where}{path}")
        chart.lock = found if isinstance(found, dict) else None
        if path == "requirements.lock" and old:
            chart.files[path] = content
    elif path == "values.yaml":
        chart.values = read_values(content, f"{where}{path}")
    elif path == "values.schema.json":
        chart.schema = content
    elif path == "requirements.yaml":
        _read_metadata(chart.metadata, content, f"{where}{path}")
        if old:
            chart.files[path] = content
    elif path.startswith("templates/"):
        chart.templates[path] = content
    else:
        chart.files[path] = content


@shallow
def read_values(content: bytes | str, source: str = "values.yaml") -> dict[str, Any]:
    """A values file. Numbers are float64, as Helm has them; several documents are merged. Raises ChartError."""
    merged: dict[str, Any] = {}
    try:
        documents = load_each(content, source)
    except YamlError as error:
        raise ChartError(f"{error}") from None
    for document in documents:
        if document is not None and not isinstance(document, dict):
            raise ChartError(f"{source}: expected a map (key: value), found {_kind(document)}")
        merged = overlaid(merged, document or {})
    made: dict[str, Any] = floats(merged)
    return made


def overlaid(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    """Maps are merged, anything else is replaced."""
    made = dict(lower)
    for key, value in upper.items():
        known = made.get(key)
        made[key] = overlaid(known, value) if isinstance(value, dict) and isinstance(known, dict) else value
    return made


def _yaml(content: bytes, source: str) -> Any:
    try:
        return load_first(content, source)
    except YamlError as error:
        raise ChartError(str(error)) from None


# -- Chart.yaml --------------------------------------------------------------------------------------------------------


def _read_metadata(metadata: Metadata, content: bytes, source: str) -> None:
    """Sets the fields that the file has."""
    found = _yaml(content, source)
    if found is None:
        return
    if not isinstance(found, dict):
        raise ChartError(f"{source}: expected a map (key: value), found {_kind(found)}")
    for name in _TEXTS:
        if found.get(_NAMES[name]) is not None:
            setattr(metadata, name, _clean(_text(found, _NAMES[name], source)))
    if found.get("deprecated") is not None:
        if not isinstance(found["deprecated"], bool):
            raise ChartError(f"{source}: deprecated: expected true or false, found {_kind(found['deprecated'])}")
        metadata.deprecated = found["deprecated"]
    for name in ("sources", "keywords"):
        if found.get(name) is not None:
            setattr(metadata, name, Strings(map(_clean, _texts(found, name, source))))
    if found.get("annotations") is not None:
        metadata.annotations = StringMap(_annotations(found["annotations"], source))
    if found.get("maintainers") is not None:
        metadata.maintainers = [_maintainer(each, source) for each in _list(found, "maintainers", source)]
    if found.get("dependencies") is not None:
        metadata.dependencies = [_dependency(each, source) for each in _list(found, "dependencies", source)]


def _text(found: dict[str, Any], key: str, source: str) -> str:
    value = as_text(found.get(key))
    if value is None:
        raise ChartError(f"{source}: {key}: expected a string, found {_kind(found.get(key))}")
    return value


def _texts(found: dict[str, Any], key: str, source: str) -> list[str]:
    return [_text({key: value}, key, source) for value in _list(found, key, source)]


def _list(found: dict[str, Any], key: str, source: str) -> list[Any]:
    value = found.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ChartError(f"{source}: {key}: expected a list, found {_kind(value)}")
    return value


def _annotations(value: Any, source: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ChartError(f"{source}: annotations: expected a map, found {_kind(value)}")
    return {key: _text(value, key, f"{source}: annotations") for key in value}


def _maintainer(value: Any, source: str) -> Maintainer:
    if not isinstance(value, dict):
        raise ChartError(f"{source}: maintainers: expected maps with a name, found {_kind(value)}")
    return Maintainer(*(_clean(_text(value, key, f"{source}: maintainers")) for key in ("name", "email", "url")))


def _dependency(value: Any, source: str) -> Dependency:
    if not isinstance(value, dict):
        raise ChartError(f"{source}: dependencies: expected maps with a name, found {_kind(value)}")
    place = f"{source}: dependencies"
    made = Dependency()
    for key in _DEPENDENCY_TEXTS:
        setattr(made, key, _clean(_text(value, key, place)))
    made.tags = [_clean(each) for each in _texts(value, "tags", place)]
    made.import_values = _list(value, "import-values", place)
    if made.alias and not _ALIAS.fullmatch(made.alias):
        raise ChartError(
            f"{place}: alias {made.alias!r} of {made.name!r} is invalid: expected letters, digits, '-' and '_'"
        )
    return made


def _clean(text: str) -> str:
    """Every blank is a space, and what can't be printed is left out."""
    return "".join(" " if c.isspace() else c for c in text if c.isspace() or c.isprintable())


def _check(metadata: Metadata, source: str) -> None:
    if not metadata.name:
        raise ChartError(f"{source}: name is missing")
    if metadata.name in (".", "..") or "/" in metadata.name:
        raise ChartError(f"{source}: name {metadata.name!r} is invalid: it must not be a path")
    if not metadata.version:
        raise ChartError(f"{source}: version is missing")
    try:
        parse(metadata.version)
    except CallError:
        raise ChartError(f"{source}: version {metadata.version!r} is invalid: expected for example 1.2.3") from None
    if metadata.type not in ("", "application", "library"):
        raise ChartError(f"{source}: type {metadata.type!r} is invalid: expected application or library")
    names = [each.alias or each.name for each in metadata.dependencies or []]
    for name in names:
        if names.count(name) > 1:
            raise ChartError(f"{source}: dependencies: {name!r} is there twice; give one of them an alias")


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    return {dict: "a map", list: "a list", str: "a string", bool: "a boolean"}.get(type(value), "a number")
