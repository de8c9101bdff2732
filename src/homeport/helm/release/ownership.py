"""The marks by which Helm knows the objects of a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from homeport.runtime.definition import SHARED_LABEL

Json = dict[str, Any]

LABEL: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "Helm"
NAME_ANNOTATION: Final = "meta.helm.sh/release-name"
NAMESPACE_ANNOTATION: Final = "meta.helm.sh/release-namespace"


def marked(obj: Mapping[str, Any], name: str, namespace: str) -> Json:
    """The object with the marks of the release, whatever it had in their place."""
    metadata = dict(obj.get("metadata") or {})
    metadata["labels"] = {**_texts(metadata.get("labels")), LABEL: MANAGER}
    metadata["annotations"] = {
        **_texts(metadata.get("annotations")),
        NAME_ANNOTATION: name,
        NAMESPACE_ANNOTATION: namespace,
    }
    return {**obj, "metadata": metadata}


def _texts(values: Mapping[str, Any] | None) -> Json:
    """A template that leaves a value empty makes it null: Helm reads that as an empty text."""
    return {name: "" if text is None else text for name, text in (values or {}).items()}


def foreign(live: Mapping[str, Any], name: str, namespace: str) -> str:
    """Why the live object does not belong to the release; empty if it does."""
    metadata = live.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    wanted = (
        ("label", LABEL, labels.get(LABEL), MANAGER),
        ("annotation", NAME_ANNOTATION, annotations.get(NAME_ANNOTATION), name),
        ("annotation", NAMESPACE_ANNOTATION, annotations.get(NAMESPACE_ANNOTATION), namespace),
    )
    faults = [
        f"{what} {key} is {found!r} instead of {value!r}" if found is not None else f"{what} {key} is missing"
        for what, key, found, value in wanted
        if found != value
    ]
    return "; ".join(faults)


def stands_in(live: Mapping[str, Any]) -> bool:
    """Whether a definition of Homeport serves the kinds of another project as long as that does not bring its own."""
    metadata = live.get("metadata") or {}
    return SHARED_LABEL in (metadata.get("labels") or {}) and not is_released(live)


def is_released(live: Mapping[str, Any]) -> bool:
    """Whether it belongs to a release."""
    return NAME_ANNOTATION in ((live.get("metadata") or {}).get("annotations") or {})
