"""Objects made from templates."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from homeport.api.meta import Unstructured
from homeport.capi.contract import infra_template
from homeport.capi.name import (
    CLONED_FROM_GROUPKIND,
    CLONED_FROM_NAME,
    CLUSTER_NAME_LABEL,
    TEMPLATE_SUFFIX,
)
from homeport.machinery.gvk import parse_api_version


def clone(
    template: Unstructured,
    *,
    name: str,
    namespace: str,
    cluster_name: str,
    owner: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: tuple[str, ...] = (),
) -> dict[str, Any]:
    """An object of the template's kind without "Template", to be created. Given labels win over the template's."""
    body = infra_template.template(template)
    kind = str(template["kind"])
    group = parse_api_version(str(template["apiVersion"])).group
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "labels": {**(body["metadata"].get("labels") or {}), **(labels or {}), CLUSTER_NAME_LABEL: cluster_name},
        "annotations": {
            **(body["metadata"].get("annotations") or {}),
            **(annotations or {}),
            CLONED_FROM_NAME: template.name,
            CLONED_FROM_GROUPKIND: f"{kind}.{group}",
        },
    }
    if owner is not None:
        metadata["ownerReferences"] = [dict(owner)]
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return {
        "apiVersion": template["apiVersion"],
        "kind": kind.removesuffix(TEMPLATE_SUFFIX),
        "metadata": metadata,
        "spec": deepcopy(body["spec"]),
    }


def cloned_from(obj: Mapping[str, Any]) -> tuple[str, str] | None:
    """(kind.group, name) of the template that an object was made from."""
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    kind, name = annotations.get(CLONED_FROM_GROUPKIND), annotations.get(CLONED_FROM_NAME)
    return (kind, name) if kind and name else None
