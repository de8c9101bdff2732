"""What a chart gives, in the form in which a record holds it: chart, manifest, hooks, and the objects in them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from homeport.helm.errors import ReleaseError
from homeport.machinery import yaml
from homeport.machinery.chart import Hook, Manifest

Json = dict[str, Any]

KEEP_ANNOTATION: Final = "helm.sh/resource-policy"
_TEXTS: Final = ("name", "version", "appVersion", "apiVersion", "kubeVersion", "description", "home", "icon", "type")
_OWN_FILES: Final = frozenset({"Chart.yaml", "Chart.lock", "values.yaml", "values.schema.json"})
# Webhooks go before what they serve, so that they do not refuse its deletion.
_WEBHOOKS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService")


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes two manifests the same object. The version of the API does not: an object keeps its identity."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name}"


def identify(obj: Mapping[str, Any], namespace: str) -> Identity:
    """`namespace`: that of the release, for an object that names none. A cluster-wide object has it too: harmless."""
    metadata = obj.get("metadata") or {}
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    return Identity(
        group, str(obj.get("kind", "")), str(metadata.get("namespace") or namespace), str(metadata.get("name", ""))
    )


def manifest_text(manifests: Iterable[Manifest]) -> str:
    return "".join(f"---\n# Source: {each.source}\n{each.text}\n" for each in manifests)


def parse_manifest(text: str, label: str) -> list[Json]:
    """The objects of a manifest in its order, lists unfolded. `label` names the release in errors."""
    try:
        found = yaml.load_each(text, label)
    except yaml.YamlError as error:
        raise ReleaseError(f"{label}: its manifest is not valid YAML: {error}") from None
    objects = list(_unfolded(each for each in found if each is not None))
    for obj in objects:
        metadata = obj.get("metadata")
        if not obj.get("apiVersion") or not obj.get("kind") or not isinstance(metadata, dict):
            raise ReleaseError(f"{label}: a document of its manifest lacks apiVersion, kind or metadata: {sorted(obj)}")
        if not metadata.get("name"):
            raise ReleaseError(
                f"{label}: {obj['kind']} without metadata.name: generateName can't be used in a release, "
                "because the object could not be found again"
            )
    return objects


def _unfolded(objects: Iterable[Any]) -> Iterator[Json]:
    for obj in objects:
        if not isinstance(obj, dict):
            yield {}  # refused like an object without a kind
        elif str(obj.get("kind", "")).endswith("List") and isinstance(obj.get("items"), list):
            yield from _unfolded(obj["items"])
        else:
            yield obj


def is_kept(obj: Mapping[str, Any]) -> bool:
    """Helm's resource policy: the object outlives its release."""
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(KEEP_ANNOTATION, "")).strip().lower() == "keep"


def removes_itself(obj: Mapping[str, Any]) -> bool:
    """A Job that is deleted after it finished: that it is missing does not mean that it has to run again."""
    spec = obj.get("spec")
    return obj.get("kind") == "Job" and isinstance(spec, Mapping) and spec.get("ttlSecondsAfterFinished") is not None


def uninstall_waves(objects: Sequence[Json]) -> list[list[Json]]:
    """What is deleted together. A wave is gone before the next one is deleted.

    First the webhooks, which would refuse; then custom objects, whose finalizers need the controllers of the last wave;
    then the rest, in the reverse of the order in which it was created.
    """
    waves: list[list[Json]] = [[], [], []]
    for obj in reversed(objects):
        group = str(obj["apiVersion"]).rpartition("/")[0]
        if obj["kind"] in _WEBHOOKS:
            waves[0].append(obj)
        elif "." in group and not group.endswith(".k8s.io"):
            waves[1].append(obj)
        else:
            waves[2].append(obj)
    return [wave for wave in waves if wave]


def hook_record(hook: Hook) -> Json:
    record: Json = {
        "name": hook.name,
        "kind": hook.kind,
        "path": hook.source,
        "manifest": hook.text,
        "events": list(hook.events),
        "last_run": {"started_at": "", "completed_at": "", "phase": ""},
    }
    if hook.weight:
        record["weight"] = hook.weight
    if hook.delete_policies:
        record["delete_policies"] = list(hook.delete_policies)
    if hook.log_policies:
        record["output_log_policies"] = list(hook.log_policies)
    return record


def chart_record(files: Mapping[str, bytes]) -> Json:
    """The chart as a record holds it. As with Helm, the charts that it depends on are not part of the record."""
    metadata = _mapping(files, "Chart.yaml")
    for field in _TEXTS:
        if metadata.get(field) is not None:
            metadata[field] = str(metadata[field])
    if metadata.get("apiVersion") == "v1" and "requirements.yaml" in files:
        metadata.update(_mapping(files, "requirements.yaml"))
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {str(name): str(value) for name, value in annotations.items()}
    schema = files.get("values.schema.json")
    return {
        "metadata": metadata,
        "lock": _mapping(files, "Chart.lock") or None,
        "templates": [_file(path, files) for path in sorted(files) if path.startswith("templates/")],
        "values": _mapping(files, "values.yaml"),
        "schema": base64.b64encode(schema).decode() if schema is not None else None,
        "files": [_file(path, files) for path in sorted(files) if _is_further(path)],
    }


def chart_digest(files: Mapping[str, bytes]) -> str:
    """One digest for the content of a chart, however it was packed."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path}\0{len(files[path])}\0".encode())
        digest.update(files[path])
    return f"sha256:{digest.hexdigest()}"


def _is_further(path: str) -> bool:
    return path not in _OWN_FILES and not path.startswith(("templates/", "charts/"))


def _file(path: str, files: Mapping[str, bytes]) -> Json:
    return {"name": path, "data": base64.b64encode(files[path]).decode()}


def _mapping(files: Mapping[str, bytes], path: str) -> Json:
    if path not in files:
        return {}
    found = yaml.load_first(files[path])  # as Helm reads it: what follows the first document is ignored
    return found if isinstance(found, dict) else {}
