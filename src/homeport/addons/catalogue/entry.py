"""The shape of a catalogue entry. The entries are the YAML files beside it."""

from __future__ import annotations

from typing import Any

import msgspec

from homeport.api.meta import camel

Json = dict[str, Any]


class _Part(msgspec.Struct, rename=camel, kw_only=True, forbid_unknown_fields=True):
    """A part of an entry, camel-case in the file."""


class Chart(_Part):
    repository: str
    name: str


class Parameter(_Part):
    """A setting that users give in spec.parameters. Templates read it as .Parameters.NAME."""

    name: str
    description: str
    type: str = "string"  # string, strings, integer, boolean
    required: bool = False
    default: Any = None
    example: Any = None


class Credentials(_Part):
    """A Secret for the chart, made from one of the management cluster."""

    parameter: str  # that names the Secret
    target: str  # its name in the workload cluster
    key: str
    source: tuple[str, ...] = ()  # keys of the Secret, the first that exists is copied
    text: str = ""  # or a template: .Username and .Password are from the Secret


class Entry(_Part):
    name: str
    title: str
    category: str  # cni, loadbalancer, certmanager, ingress, storage, metrics, gitops
    description: str
    homepage: str
    chart: Chart
    versions: tuple[str, ...]  # of the chart, newest first
    namespace: str
    namespace_labels: dict[str, str] = {}
    release: str = ""
    after: tuple[str, ...] = ()  # categories that are installed first, if the Cluster has them
    one_minor_at_a_time: bool = False
    provider: str = ""  # the only infrastructure on which it works; '': any
    parameters: tuple[Parameter, ...] = ()
    values: str = ""  # template of YAML
    provider_values: dict[str, str] = {}  # further ones, by infrastructure
    credentials: Credentials | None = None
    before: str = ""  # template of manifests that are applied before the chart
    manifests: str = ""  # template of manifests that are applied after it
    note: str = ""

    @property
    def release_name(self) -> str:
        return self.release or self.name

    @property
    def newest(self) -> str:
        return self.versions[0]


_TYPES: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "boolean": (bool,), "strings": (list,)}
_WORDS = {"string": "text", "integer": "a number", "boolean": "true or false", "strings": "a list of texts"}


def parameter_errors(entry: Entry, given: Json) -> list[tuple[str, str, str]]:
    """(field below spec.parameters, what is wrong, 'Required' or 'Invalid'): empty if all is well."""
    known = {each.name: each for each in entry.parameters}
    found = []
    for each in entry.parameters:
        value = given.get(each.name)
        if each.required and value in (None, "", []):
            shown = f", for example {_shown(each.example)}" if each.example is not None else ""
            found.append((each.name, f"add-on {entry.name} needs it: {each.description}{shown}", "Required"))
        elif value is not None and not _fits(each, value):
            found.append((each.name, f"expected {_WORDS[each.type]}, found {_shown(value)}", "Invalid"))
    names = ", ".join(known) or "none"
    found.extend(
        (
            name,
            f"add-on {entry.name} has no such parameter (it has: {names}). Values of the chart go into spec.values",
            "Invalid",
        )
        for name in given
        if name not in known
    )
    return found


def with_defaults(entry: Entry, given: Json) -> Json:
    """Every parameter of the entry has a value, so that templates need not ask."""
    empty: dict[str, Any] = {"string": "", "integer": 0, "boolean": False, "strings": []}
    return {
        each.name: given[each.name]
        if given.get(each.name) is not None
        else (each.default if each.default is not None else empty[each.type])
        for each in entry.parameters
    }


def _fits(parameter: Parameter, value: Any) -> bool:
    if isinstance(value, bool) and parameter.type != "boolean":
        return False
    if not isinstance(value, _TYPES[parameter.type]):
        return False
    return not isinstance(value, list) or all(isinstance(each, str) for each in value)


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()
