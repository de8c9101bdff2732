"""What a MachineSet may say, and what is filled in when it does not. Much of it holds for MachineDeployments, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.api.cluster.v1beta2 import MachineSet
from homeport.capi import name
from homeport.capi.object import naming
from homeport.client.errors import Cause
from homeport.core.machine.admission import bootstrap_causes, spec_defaults, taint_causes, version_causes
from homeport.core.machineset import preflight
from homeport.machinery.schema.name import label_key, label_value
from homeport.machinery.selector import SelectorError, from_label_selector
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]

_NAME_FIELDS = ("machineSet.name", "cluster.name")


def register(hooks: Hooks) -> None:
    hooks.add(MachineSet, default=default, validate=validate)


# -- defaults --------------------------------------------------------------------------------------------------------


def default(machine_set: Json, old: Json | None) -> None:
    owner = {name.SET_NAME_LABEL: name.label_value(str(machine_set["metadata"].get("name", "")))}
    common_defaults(machine_set, old, owner, name.SET_FINALIZER)


def common_defaults(
    obj: Json, old: Json | None, owner: dict[str, str], finalizer: str, *, select_cluster: bool = False
) -> None:
    """For all that make Machines from a template. `owner` selects its Machines where nothing else is said."""
    metadata, spec = obj["metadata"], obj["spec"]
    cluster = str(spec.get("clusterName", ""))
    _filled(metadata, "labels")[name.CLUSTER_NAME_LABEL] = cluster
    if old is None:
        # Here it costs no write of its own.
        finalizers = metadata["finalizers"] = metadata.get("finalizers") or []
        if finalizer not in finalizers:
            finalizers.append(finalizer)
    if spec.get("replicas") is None:
        spec["replicas"] = default_replicas(metadata.get("annotations") or {}, (old or {}).get("spec") or {})
    selector = _filled(spec, "selector")
    template = _filled(spec, "template")
    labels = _filled(_filled(template, "metadata"), "labels")
    matched = _filled(selector, "matchLabels")
    if not matched and not selector.get("matchExpressions"):
        matched.update(owner)
        labels.update(owner)
    labels[name.CLUSTER_NAME_LABEL] = cluster
    if select_cluster:
        matched[name.CLUSTER_NAME_LABEL] = cluster
    spec_defaults(_filled(template, "spec"))


def _filled(obj: Json, field: str) -> Json:
    found: Json = obj.get(field) or {}
    obj[field] = found
    return found


def default_replicas(annotations: dict[str, str], was: Json) -> int:
    """1, or what suits the autoscaler that is named by both its annotations. What they hold is checked elsewhere."""
    before = was.get("replicas")
    sizes = [annotations.get(key, "") for key in (name.AUTOSCALER_MIN_SIZE, name.AUTOSCALER_MAX_SIZE)]
    if not all(text.isdigit() for text in sizes):
        return 1
    least, most = (int(text) for text in sizes)
    # What runs is handed over to the autoscaler as it is, if it is within its limits.
    return least if before is None or before < least else min(int(before), most)


# -- validation ------------------------------------------------------------------------------------------------------


def validate(machine_set: Json, old: Json | None) -> list[Cause]:
    return list(common_causes(machine_set, old))


def common_causes(obj: Json, old: Json | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    template = spec.get("template") or {}
    machine = template.get("spec") or {}
    yield from bootstrap_causes(machine, "spec.template.spec")
    yield from _selector(spec, template)
    yield from _skipped(obj)
    yield from _sizes(obj)
    yield from cluster_causes(spec, old)
    if spec.get("clusterName") != machine.get("clusterName"):
        yield Cause.invalid(
            "spec.clusterName",
            f'"{spec.get("clusterName")}": must be the same as spec.template.spec.clusterName, '
            f'which is "{machine.get("clusterName")}"',
        )
    yield from version_causes(machine, "spec.template.spec")
    yield from taint_causes(machine, "spec.template.spec", worker=True)
    yield from _naming(spec)
    yield from _metadata(template.get("metadata") or {})


def cluster_causes(spec: Json, old: Json | None) -> Iterator[Cause]:
    if old is not None and (old.get("spec") or {}).get("clusterName") != spec.get("clusterName"):
        yield Cause.forbidden("spec.clusterName", "immutable: it can't be moved to another Cluster")


def _selector(spec: Json, template: Json) -> Iterator[Cause]:
    try:
        selector = from_label_selector(spec.get("selector") or {})
    except SelectorError as error:
        yield Cause.invalid("spec.selector", error)
        return
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not selector.matches(labels):
        yield Cause.invalid("spec.template.metadata.labels", f'the labels must match spec.selector "{selector}"')


def _skipped(obj: Json) -> Iterator[Cause]:
    text = (obj["metadata"].get("annotations") or {}).get(name.SKIP_PREFLIGHT_CHECKS, "")
    unknown = sorted(preflight.parse_skipped(text) - set(preflight.CHECKS))
    if unknown:
        yield Cause.invalid(
            f"metadata.annotations[{name.SKIP_PREFLIGHT_CHECKS}]",
            f'"{", ".join(unknown)}": expected some of {", ".join(preflight.CHECKS)}',
        )


def _sizes(obj: Json) -> Iterator[Cause]:
    annotations = obj["metadata"].get("annotations") or {}
    keys = (name.AUTOSCALER_MIN_SIZE, name.AUTOSCALER_MAX_SIZE)
    if not all(key in annotations for key in keys):
        return  # an autoscaler needs both; of one alone nothing is made
    for key in keys:
        if not str(annotations[key]).isdigit():
            yield Cause.invalid(
                f"metadata.annotations[{key}]",
                f'"{annotations[key]}": must be a number: it is used as the default of replicas',
            )


def _naming(spec: Json) -> Iterator[Cause]:
    template = (spec.get("machineNaming") or {}).get("template")
    wrong = naming.check(template, _NAME_FIELDS) if template else ""
    if wrong:
        yield Cause.invalid("spec.machineNaming.template", wrong)


def _metadata(metadata: Json) -> Iterator[Cause]:
    for key, value in (metadata.get("labels") or {}).items():
        for wrong in (*label_key(key), *label_value(value)):
            yield Cause.invalid("spec.template.metadata.labels", f'"{key}": {wrong}')
    for key in metadata.get("annotations") or {}:
        for wrong in label_key(key.lower()):
            yield Cause.invalid("spec.template.metadata.annotations", f'"{key}": {wrong}')
