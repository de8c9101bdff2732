"""Rendered texts to objects: documents, hooks, and the order in which they are installed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from homeport.machinery.chart.error import ChartError
from homeport.machinery.chart.model import Json, as_text
from homeport.machinery.gotemplate.value import octets
from homeport.machinery.yaml import YamlError, load_each, load_first

HOOK: Final = "helm.sh/hook"
WEIGHT: Final = "helm.sh/hook-weight"
DELETE_POLICY: Final = "helm.sh/hook-delete-policy"
LOG_POLICY: Final = "helm.sh/hook-output-log-policy"
RESOURCE_POLICY: Final = "helm.sh/resource-policy"
_BLANKS: Final = "\t\n\v\f\r \x85\xa0\u2028\u2029\u3000"
_OLD_SEPARATOR: Final = re.compile(r"(?:^|\s*\n)---\s*")
_SEPARATOR: Final = re.compile(r"^---[ \t]*", re.MULTILINE)
_MOST_DIGITS: Final = 19  # more do not fit into 64 bits: Helm takes such a weight for 0
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]+")

_EVENTS: Final = {
    **{
        event: event
        for event in (
            "pre-install", "post-install", "pre-delete", "post-delete", "pre-upgrade", "post-upgrade", "pre-rollback",
            "post-rollback", "test",
        )
    },
    "test-success": "test",
}  # fmt: skip

INSTALL_ORDER: Final = (
    "PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy",
    "PodDisruptionBudget", "ServiceAccount", "Secret", "SecretList", "ConfigMap", "StorageClass", "PersistentVolume",
    "PersistentVolumeClaim", "CustomResourceDefinition", "ClusterRole", "ClusterRoleList", "ClusterRoleBinding",
    "ClusterRoleBindingList", "Role", "RoleList", "RoleBinding", "RoleBindingList", "Service", "DaemonSet", "Pod",
    "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob",
    "IngressClass", "Ingress", "APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
)  # fmt: skip
_NEWER_KINDS: Final = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a chart: the path of its template, its text, and the object."""

    source: str
    text: str
    object: Json

    @property
    def keep(self) -> bool:
        """Whether the object stays when the release is removed."""
        return str(_annotations(self.object).get(RESOURCE_POLICY, "")).strip().lower() == "keep"


@dataclass(frozen=True, slots=True)
class Hook:
    """An object that is created at certain moments of a release, and is not part of it."""

    source: str
    text: str
    object: Json
    events: tuple[str, ...]
    weight: int
    delete_policies: tuple[str, ...]
    log_policies: tuple[str, ...]

    @property
    def kind(self) -> str:
        return str(self.object.get("kind") or "")

    @property
    def name(self) -> str:
        return str((self.object.get("metadata") or {}).get("name") or "")


def sorted_manifests(files: Mapping[str, str], major: int) -> tuple[list[Manifest], list[Hook]]:
    """Both in the order of their kinds. Raises ChartError."""
    manifests: list[Manifest] = []
    hooks: list[Hook] = []
    for path in sorted(files):
        for number, text in enumerate(_documents(files[path], major), 1):
            found = _object(text, path, number)
            if found is None:
                continue
            annotations = _annotations(found)
            if HOOK not in annotations:
                manifests.append(Manifest(path, text, found))
                continue
            hook = _hook(path, text, found, annotations)
            if hook is not None:
                hooks.append(hook)
    manifests.sort(key=lambda each: kind_order(str(each.object.get("kind") or ""), major))
    hooks.sort(key=lambda each: kind_order(each.kind, major))
    return manifests, hooks


def kind_order(kind: str, major: int = 4) -> tuple[int, str]:
    """Kinds that are not in the list come last, by their names."""
    if kind in INSTALL_ORDER and (major > 3 or kind not in _NEWER_KINDS):
        return INSTALL_ORDER.index(kind), ""
    return len(INSTALL_ORDER), kind


def _documents(text: str, major: int) -> list[str]:
    if not text.strip(_BLANKS):
        return []
    if major == 3:
        return [part.strip(_BLANKS) for part in _OLD_SEPARATOR.split(text.strip(_BLANKS)) if part]
    parts = _SEPARATOR.split(text.lstrip(_BLANKS))
    return [part.lstrip(_BLANKS) for part in parts if part.strip(_BLANKS)]


def _object(text: str, path: str, number: int) -> Json | None:
    """None for a document that has only comments."""
    place = f"{path}: object {number} of the rendered text"
    try:
        found = load_first(octets(text + "\n"))  # as it stands in a release, where another line follows
    except YamlError as error:
        raise ChartError(f"{place} is not valid YAML: {error}") from None
    if found is None:
        return None
    if not isinstance(found, dict):
        raise ChartError(f"{place} must be a map with apiVersion and kind")
    for key in ("apiVersion", "kind"):
        if as_text(found.get(key)) is None:
            raise ChartError(f"{place}: {key} must be a string")
    metadata = found.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise ChartError(f"{place}: metadata must be a map")
    if as_text((metadata or {}).get("name")) is None:
        raise ChartError(f"{place}: metadata.name must be a string")
    annotations = (metadata or {}).get("annotations")
    if annotations is not None and not isinstance(annotations, dict):
        raise ChartError(f"{place}: metadata.annotations must be a map")
    for key, value in (annotations or {}).items():
        if as_text(value) is None:
            raise ChartError(f"{place}: metadata.annotations[{key!r}] must be a string")
    return found


def _annotations(found: Json) -> dict[str, Any]:
    metadata = found.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return {key: as_text(value) for key, value in annotations.items()} if isinstance(annotations, dict) else {}


def _hook(path: str, text: str, found: Json, annotations: dict[str, Any]) -> Hook | None:
    """None for a hook of a kind that Helm does not know: it is left out."""
    events = [_EVENTS.get(each) for each in _words(annotations[HOOK])]
    if None in events:
        return None
    weight = annotations.get(WEIGHT) or ""
    return Hook(
        path,
        text,
        found,
        tuple(each for each in events if each is not None),
        int(weight) if _WHOLE_NUMBER.fullmatch(weight) and len(weight) < _MOST_DIGITS else 0,
        tuple(_words(annotations[DELETE_POLICY])) if DELETE_POLICY in annotations else (),
        tuple(_words(annotations[LOG_POLICY])) if LOG_POLICY in annotations else (),
    )


def _words(text: str | None) -> list[str]:
    return [word.strip(_BLANKS).lower() for word in (text or "").split(",")]


def crd_manifests(path: str, content: bytes) -> list[Manifest]:
    """The objects of one file of crds/, which is not a template. Raises ChartError."""
    try:
        documents = load_each(content, path)
    except YamlError as error:
        raise ChartError(str(error)) from None
    made: list[Manifest] = []
    text = content.decode("utf-8", "replace")  # one text for all of them: such files are large
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict):
            raise ChartError(f"{path}: expected objects with apiVersion and kind")
        made.append(Manifest(path, text, document))
    return made
