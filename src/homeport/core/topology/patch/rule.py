"""What the patches of a ClusterClass must be like, for admission: all that can be known before a Cluster uses them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from homeport.api.cluster.v1beta2 import ClusterClass
from homeport.api.cluster.v1beta2.patch import ClusterClassPatch, JSONPatch, PatchSelector
from homeport.api.cluster.v1beta2.template import ClusterClassTemplateReference
from homeport.core.topology.patch.selector import Role, named, patterns
from homeport.core.topology.variable.reference import BadReference, check_reference, variable_of
from homeport.machinery.gotemplate import TemplateError, compiled
from homeport.machinery.schema.name import label_key

Wrong = tuple[str, str]  # path, message

_INLINE: Final = "inline"  # what the status of a class says of variables that the class itself defines
_INDEX: Final = re.compile(r"[+-]?[0-9]+")
_OBJECT: Final = ("name", "metadata.labels", "metadata.annotations")
_WORKERS: Final = (
    "class", *_OBJECT, "replicas", "topologyName", "version", "bootstrap.configRef.name", "infrastructureRef.name",
)  # fmt: skip
_BUILTIN: Final = {
    "cluster": (
        *_OBJECT, "namespace", "uid",
        "topology", "topology.version", "topology.class", "topology.classNamespace",
        "topology.classRef.name", "topology.classRef.namespace",
        "network", "network.serviceDomain", "network.services", "network.pods",
    ),
    "controlPlane": (*_OBJECT, "replicas", "version", "machineTemplate.infrastructureRef.name"),
    "machineDeployment": _WORKERS,
    "machinePool": _WORKERS,
}  # fmt: skip
BUILTIN_REFERENCES: Final = frozenset(
    ["builtin", *(f"builtin.{part}" for part in _BUILTIN)]
    + [f"builtin.{part}.{fact}" for part, facts in _BUILTIN.items() for fact in facts]
)


def check_patches(cluster_class: ClusterClass) -> list[Wrong]:
    """Paths into the class, and what is wrong there."""
    wrong: list[Wrong] = []
    names: set[str] = set()
    variables = {each.name for each in cluster_class.spec.variables}
    for i, patch in enumerate(cluster_class.spec.patches):
        path = f"spec.patches[{i}]"
        wrong += _name(patch.name, names, f"{path}.name")
        names.add(patch.name)
        wrong += _template(patch.enabled_if, f"{path}.enabledIf")
        wrong += _source(patch, path)
        for j, definition in enumerate(patch.definitions):
            below = f"{path}.definitions[{j}]"
            for k, operation in enumerate(definition.json_patches):
                wrong += _operation(operation, variables, f"{below}.jsonPatches[{k}]")
            wrong += _selector(definition.selector, cluster_class, f"{below}.selector")
    return wrong


def _name(name: str, before: set[str], path: str) -> Iterator[Wrong]:
    if not name:
        yield path, "a patch needs a name"
    if name == _INLINE:
        yield path, f"{_INLINE!r} is reserved for the class itself: choose another name"
    if name in before:
        yield path, f"another patch has the name {name!r}: choose another one"


def _source(patch: ClusterClassPatch, path: str) -> Iterator[Wrong]:
    if patch.external is not None:
        yield (
            f"{path}.external",
            "patches of runtime extensions are not supported: use definitions with jsonPatches",
        )
    elif not patch.definitions:
        yield path, "a patch needs definitions"


def _template(text: str, path: str) -> Iterator[Wrong]:
    if not text:
        return
    try:
        compiled(text)
    except TemplateError as wrong:
        yield path, f"the template can't be parsed: {wrong}"


# -- operations --------------------------------------------------------------------------------------------------------


def _operation(operation: JSONPatch, variables: set[str], path: str) -> Iterator[Wrong]:
    if operation.op not in ("add", "replace", "remove"):
        yield f"{path}.op", f"{operation.op!r} is not supported: use add, replace or remove"
    if operation.path != "/spec" and not operation.path.startswith("/spec/"):
        yield f"{path}.path", f"{operation.path!r} must begin with /spec: nothing else can be patched"
    yield from _positions(operation, f"{path}.path")
    if operation.op in ("add", "replace"):
        yield from _value(operation, variables, path)


def _positions(operation: JSONPatch, path: str) -> Iterator[Wrong]:
    """Places in lists change with every other patch: a patch may only say 'in front' and 'at the end'."""
    for part in operation.path.split("/"):
        if not _INDEX.fullmatch(part):
            continue
        if operation.op != "add":
            yield path, f"{operation.op} can't change an item of the list at {part!r}: replace the list as a whole"
        elif int(part) != 0:
            yield path, f"an item can be added to a list at 0 (in front) or - (at the end), not at {part}"


def _value(operation: JSONPatch, variables: set[str], path: str) -> Iterator[Wrong]:
    source = operation.value_from
    if operation.value is None and source is None:
        yield path, f"{operation.op} needs value or valueFrom"
    if operation.value is not None and source is not None:
        yield path, "value and valueFrom are mutually exclusive: remove one of them"
    if source is None:
        return
    if bool(source.template) == bool(source.variable):
        yield f"{path}.valueFrom", "set either variable or template"
    yield from _template(source.template, f"{path}.valueFrom.template")
    if source.variable:
        yield from _reference(source.variable, variables, f"{path}.valueFrom.variable")


def _reference(reference: str, variables: set[str], path: str) -> Iterator[Wrong]:
    try:
        check_reference(reference)
    except BadReference as wrong:
        yield path, str(wrong)
        return
    name = variable_of(reference)
    if name == "builtin":
        # Without the places in lists: which of several networks a Cluster has is its own business.
        if re.sub(r"\[[^\]]*\]", "", reference) not in BUILTIN_REFERENCES:
            yield (
                path,
                f"{reference!r} is not a builtin variable: expected one of {', '.join(sorted(BUILTIN_REFERENCES))}",
            )
    elif name not in variables:
        yield path, f"the class has no variable {name!r}: define it in spec.variables"


# -- selectors ---------------------------------------------------------------------------------------------------------


def _selector(selector: PatchSelector, cluster_class: ClusterClass, path: str) -> Iterator[Wrong]:
    wanted, spec = selector.match_resources, cluster_class.spec
    deployments, pools = patterns(wanted, "machineDeployment"), patterns(wanted, "machinePool")
    path = f"{path}.matchResources"
    if not (wanted.infrastructure_cluster or wanted.control_plane or deployments or pools):
        yield path, "it selects nothing: set infrastructureCluster, controlPlane, or names of classes"
    if wanted.infrastructure_cluster and not _refers(selector, [spec.infrastructure.template_ref]):
        yield f"{path}.infrastructureCluster", f"{_kind(selector)} is not what spec.infrastructure uses"
    used = [spec.control_plane.template_ref, spec.control_plane.machine_infrastructure.template_ref]
    if wanted.control_plane and not _refers(selector, used):
        yield (
            f"{path}.controlPlane",
            f"{_kind(selector)} is neither the control plane nor its machines in spec.controlPlane",
        )
    yield from _classes(selector, cluster_class, "machineDeployment", deployments, path)
    yield from _classes(selector, cluster_class, "machinePool", pools, path)


def _classes(
    selector: PatchSelector, cluster_class: ClusterClass, role: Role, wanted: Sequence[str], path: str
) -> Iterator[Wrong]:
    workers = cluster_class.spec.workers
    classes = [
        (each.class_, [each.bootstrap.template_ref, each.infrastructure.template_ref])
        for each in (workers.machine_deployments if role == "machineDeployment" else workers.machine_pools)
    ]
    for i, pattern in enumerate(wanted):
        where = f"{path}.{role}Class.names[{i}]"
        trouble = _pattern_trouble(pattern)
        if trouble:
            yield where, trouble
        elif not any(named(pattern, name) and _refers(selector, used) for name, used in classes):
            yield where, f"no class in spec.workers.{role}s that is named {pattern!r} uses {_kind(selector)}"


def _pattern_trouble(pattern: str) -> str:
    if pattern.count("*") > 1:
        return f"{pattern!r} has more than one '*'"
    if "*" in pattern and not (pattern.startswith("*") or pattern.endswith("*")):
        return f"{pattern!r} has a '*' in the middle: it is allowed at the beginning or at the end only"
    wrong = label_key(pattern.replace("*", "a")) if "*" in pattern else []
    return f"{pattern!r} can't be the name of a class: {wrong[0]}" if wrong else ""


def _refers(selector: PatchSelector, used: Sequence[ClusterClassTemplateReference | None]) -> bool:
    return any(
        each is not None and (each.api_version, each.kind) == (selector.api_version, selector.kind) for each in used
    )


def _kind(selector: PatchSelector) -> str:
    return f"{selector.kind} of {selector.api_version}"
