"""Patches of a ClusterClass, laid over the templates of one Cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from homeport.api.cluster.v1beta2.patch import ClusterClassPatch, JSONPatch, PatchDefinition
from homeport.core.topology.patch.rule import check_patches
from homeport.core.topology.patch.selector import Role, selects
from homeport.core.topology.variable.reference import BadReference, value_of, variable_of
from homeport.machinery import patch as jsonpatch
from homeport.machinery import yaml
from homeport.machinery.gotemplate import TemplateError, compiled
from homeport.machinery.gotemplate.sprig.encoding import floats

__all__ = ["PatchError", "Subject", "check_patches", "patched", "used_variables"]

Json = dict[str, Any]

_LARGEST_BYTES: Final = 1 << 20  # of a rendered value: no object may be larger anyway


@dataclass(frozen=True)
class Subject:
    """One template of the desired state while the patches go over it."""

    object: Json  # the template: apiVersion, kind, metadata, spec.template
    role: Role  # controlPlane also for the template of the control plane's machines
    class_name: str = ""  # of the deployment or pool
    values: Mapping[str, Any] = field(default_factory=dict)  # all variables by name, "builtin" among them

    @cached_property
    def data(self) -> Any:
        """The variables as templates see them: every number is a float64 to Go, whatever it is in the schema."""
        return floats(dict(self.values))

    def is_meant(self, definition: PatchDefinition) -> bool:
        return selects(
            definition.selector,
            api_version=str(self.object.get("apiVersion", "")),
            kind=str(self.object.get("kind", "")),
            role=self.role,
            class_name=self.class_name,
        )

    def __str__(self) -> str:
        name = (self.object.get("metadata") or {}).get("name", "")
        return f"{self.object.get('kind', '')} {name!r}"


class PatchError(Exception):
    """A patch that can't be laid over a template: says which patch, definition and operation, and why."""

    def __init__(self, patch: str, place: str, subject: Subject, why: str) -> None:
        super().__init__(f"patch {patch!r}{place} for {subject}: {why}")
        self.patch = patch


def patched(patches: Sequence[ClusterClassPatch], subjects: Sequence[Subject]) -> list[Json]:
    """The templates with all patches in their order, sharing nothing with what is given. Raises PatchError."""
    return [_over(patches, subject) for subject in subjects]


def used_variables(patches: Sequence[ClusterClassPatch]) -> set[str]:
    """Names of the variables that values are taken from; what templates mention may be missing, so it is not here."""
    return {
        variable_of(operation.value_from.variable)
        for patch in patches
        for definition in patch.definitions
        for operation in definition.json_patches
        if operation.value_from is not None and operation.value_from.variable
    } - {"builtin"}


def _over(patches: Sequence[ClusterClassPatch], subject: Subject) -> Json:
    result = subject.object
    for patch in patches:
        if patch.external is not None:
            raise PatchError(patch.name, "", subject, "it calls a runtime extension, which is not supported")
        meant = [(i, each) for i, each in enumerate(patch.definitions) if subject.is_meant(each)]
        if not meant or not _enabled(patch, subject):
            continue
        for i, definition in meant:
            for j, operation in enumerate(definition.json_patches):
                place = f", definition {i}, operation {j} ({operation.op} {operation.path})"
                try:
                    result = _step(result, operation, subject)
                except (_BadValue, BadReference, jsonpatch.PatchError) as wrong:
                    raise PatchError(patch.name, place, subject, str(wrong)) from wrong
    made: Json = _copied(result)
    return made


def _enabled(patch: ClusterClassPatch, subject: Subject) -> bool:
    """A patch is on unless its condition gives anything else than true."""
    if not patch.enabled_if:
        return True
    try:
        return _rendered(patch.enabled_if, subject) is True
    except _BadValue as wrong:
        raise PatchError(patch.name, ", enabledIf", subject, str(wrong)) from wrong


class _BadValue(ValueError):
    pass


def _step(doc: Json, operation: JSONPatch, subject: Subject) -> Json:
    if operation.path != "/spec" and not operation.path.startswith("/spec/"):
        raise _BadValue("only fields under /spec can be patched")
    step: Json = {"op": operation.op, "path": operation.path}
    if operation.op != "remove":
        step["value"] = _value(operation, subject)
    if operation.op == "replace":
        # The API server takes a replace of what is absent for an add. Classes are written for those that refuse it.
        _require(doc, operation.path)
    try:
        result: Json = jsonpatch.json_patch(doc, [step])
    except jsonpatch.PatchError as wrong:
        raise _BadValue(_advice(wrong, operation)) from wrong
    return result


def _require(doc: Any, path: str) -> None:
    try:
        jsonpatch.json_patch(doc, [{"op": "remove", "path": path}])
    except jsonpatch.PatchError:
        raise _BadValue("there is nothing to replace: use the operation add") from None


def _advice(wrong: jsonpatch.PatchError, operation: JSONPatch) -> str:
    if operation.op == "add":
        parent = operation.path.rpartition("/")[0]
        return f"{parent} does not exist or can't have this item: add it in an earlier operation ({wrong.message})"
    return f"there is nothing to {operation.op}: {wrong.message}"


def _value(operation: JSONPatch, subject: Subject) -> Any:
    source = operation.value_from
    if (operation.value is None) == (source is None):
        raise _BadValue("set either value or valueFrom")
    if source is None:
        return operation.value
    if bool(source.variable) == bool(source.template):
        raise _BadValue("set either variable or template in valueFrom")
    if source.variable:
        return value_of(source.variable, subject.values)
    return _rendered(source.template, subject)


def _rendered(text: str, subject: Subject) -> Any:
    try:
        rendered = compiled(text).render(subject.data, limit=_LARGEST_BYTES)
    except TemplateError as wrong:
        raise _BadValue(f"the template can't be rendered: {wrong}") from wrong
    try:
        return _integers(yaml.load(rendered))
    except (yaml.YamlError, RecursionError) as wrong:
        shown = rendered if len(rendered) <= 200 else f"{rendered[:200]} ..."
        raise _BadValue(f"the template renders {shown!r}, which is not valid YAML: {wrong}") from wrong


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_copied(below) for below in value]
    return value


def _integers(value: Any) -> Any:
    """Large numbers leave a template as 4e+06; to a schema that asks for an integer they are one."""
    if isinstance(value, dict):
        return {key: _integers(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_integers(below) for below in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    return value
