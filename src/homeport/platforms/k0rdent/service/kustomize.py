"""Kustomizations: the objects that `kustomization.yaml` and the files beside it stand for. Pure.

What it does not know is refused by name: leaving a field out would bring something else into the cluster than was
written.
"""

from __future__ import annotations

import base64
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from homeport.apiserver.kinds.load import definitions
from homeport.helm.errors import SourceError
from homeport.helm.source.disk import unpacked
from homeport.helm.source.held import ARCHIVES
from homeport.machinery import yaml
from homeport.machinery.manifest import ManifestError, described, parse_objects
from homeport.machinery.patch import PatchError, json_patch, merge_patch
from homeport.machinery.schema import Schema
from homeport.machinery.strategic import strategic_merge

Json = dict[str, Any]
Files = Mapping[str, bytes]

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_DEEPEST = 20
_KNOWN = frozenset(
    {
        "apiVersion",
        "kind",
        "metadata",
        "resources",
        "namespace",
        "commonLabels",
        "labels",
        "commonAnnotations",
        "images",
        "replicas",
        "patches",
        "patchesStrategicMerge",
        "patchesJson6902",
        "configMapGenerator",
        "secretGenerator",
        "generatorOptions",
    }
)
_UNSCOPED = frozenset(
    {
        "Namespace",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "StorageClass",
        "PriorityClass",
        "IngressClass",
        "PersistentVolume",
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "APIService",
        "RuntimeClass",
        "CSIDriver",
    }
)
_SCALED = frozenset({"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"})
# Where labels of a kustomization go besides metadata: selectors, and the templates of Pods.
_TEMPLATED = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"})


def build(held: Files, path: str, where: str) -> bytes:
    """The objects as one text of YAML. `held`: keys of a ConfigMap or Secret. Raises SourceError."""
    archives = [key for key in held if key.endswith(ARCHIVES)]
    if len(archives) > 1:
        raise SourceError(f"{where} has several archives ({', '.join(sorted(archives))}): leave one")
    files = unpacked(held[archives[0]], f"{where}, key {archives[0]}") if archives else held
    try:
        objects = _folder(files, posixpath.normpath(path or ".").lstrip("./"), where, 0)
    except (AttributeError, TypeError, KeyError, ValueError) as error:  # a list where a map should be, and the like
        raise SourceError(f"{where}: the kustomization is not valid: {error}") from None
    if not objects:
        raise SourceError(f"{where}: the kustomization has no resources")
    return "---\n".join(yaml.dump(each) for each in objects).encode()


def _folder(files: Files, folder: str, where: str, depth: int) -> list[Json]:
    if depth > _DEEPEST:
        raise SourceError(f"{where}: kustomizations refer to each other more than {_DEEPEST} levels deep")
    at = next((_join(folder, name) for name in NAMES if _join(folder, name) in files), "")
    if not at:
        raise SourceError(f"{where}: {_join(folder, NAMES[0])} is missing; files are {', '.join(sorted(files)[:10])}")
    made = _yaml(files[at], f"{where}: {at}")
    if not isinstance(made, dict):
        raise SourceError(f"{where}: {at} is not a map")
    if unknown := sorted(set(made) - _KNOWN):
        raise SourceError(f"{where}: {at}: not supported: {', '.join(unknown)}")
    objects = [each for name in made.get("resources") or () for each in _resource(files, folder, name, where, depth)]
    objects += [*_generated(files, folder, made, where)]
    return _transformed(objects, made, files, folder, f"{where}: {at}")


def _join(folder: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(folder, name))


def _resource(files: Files, folder: str, name: str, where: str, depth: int) -> list[Json]:
    if "://" in str(name):
        raise SourceError(f"{where}: resources: {name}: only files of the source can be used")
    path = _join(folder, str(name))
    if path in files:
        try:
            return parse_objects({path: files[path]})
        except ManifestError as error:
            raise SourceError(f"{where}: {error}") from None
    if any(each.startswith(f"{path}/") for each in files):
        return _folder(files, path, where, depth + 1)
    raise SourceError(f"{where}: resources: {path} does not exist")


def _generated(files: Files, folder: str, made: Json, where: str) -> Iterator[Json]:
    shared = made.get("generatorOptions") or {}
    for field, kind in (("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret")):
        for each in made.get(field) or ():
            options = {**shared, **(each.get("options") or {})}
            if options.get("disableNameSuffixHash") is not True:
                raise SourceError(f"{where}: {field} {each.get('name')}: set options.disableNameSuffixHash: true")
            data = _data(files, folder, each, where)
            encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
            texts = {key: value.decode(errors="replace") for key, value in data.items()}
            meta = {"name": each.get("name"), **({"namespace": each["namespace"]} if each.get("namespace") else {})}
            body = encoded if kind == "Secret" else texts
            extra = {"type": each.get("type") or "Opaque"} if kind == "Secret" else {}
            yield {"apiVersion": "v1", "kind": kind, "metadata": meta, "data": body, **extra}


def _data(files: Files, folder: str, generator: Json, where: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for each in generator.get("literals") or ():
        key, _, value = str(each).partition("=")
        found[key] = value.strip("\"'").encode()
    for each in generator.get("files") or ():
        key, equals, path = str(each).partition("=")
        at = _join(folder, path if equals else key)
        if at not in files:
            raise SourceError(f"{where}: {generator.get('name')}: file {at} does not exist")
        found[key if equals else posixpath.basename(at)] = files[at]
    if generator.get("envs") or generator.get("env"):
        raise SourceError(f"{where}: {generator.get('name')}: envs are not supported: use literals or files")
    return found


# -- transformations ---------------------------------------------------------------------------------------------------


def _transformed(objects: list[Json], made: Json, files: Files, folder: str, where: str) -> list[Json]:
    for patch, target in _patches(made, files, folder, where):
        objects = _patched(objects, patch, target, where)
    for each in objects:
        meta = each.setdefault("metadata", {})
        if made.get("namespace") and each["kind"] not in _UNSCOPED:
            meta["namespace"] = str(made["namespace"])
        if annotations := made.get("commonAnnotations"):
            meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}
        _label(each, made.get("commonLabels") or {}, selectors=True, templates=True)
        for entry in made.get("labels") or ():
            selectors = entry.get("includeSelectors") is True
            templates = selectors or entry.get("includeTemplates") is True
            _label(each, entry.get("pairs") or {}, selectors=selectors, templates=templates)
        for entry in made.get("replicas") or ():
            if each["kind"] in _SCALED and meta.get("name") == entry.get("name"):
                each.setdefault("spec", {})["replicas"] = entry.get("count")
        _set_images(each, made.get("images") or ())
    return objects


def _label(obj: Json, labels: Mapping[str, str], *, selectors: bool, templates: bool) -> None:
    if not labels:
        return
    meta, spec = obj["metadata"], obj.get("spec") or {}
    meta["labels"] = {**(meta.get("labels") or {}), **labels}
    kind = obj["kind"]
    if templates and kind in _TEMPLATED:
        inner = spec.setdefault("template", {}).setdefault("metadata", {})
        inner["labels"] = {**(inner.get("labels") or {}), **labels}
    if selectors and kind in _TEMPLATED - {"Job"}:
        chosen = spec.setdefault("selector", {})
        chosen["matchLabels"] = {**(chosen.get("matchLabels") or {}), **labels}
    if selectors and kind == "Service" and spec.get("selector"):
        spec["selector"] = {**spec["selector"], **labels}


def _set_images(value: Any, images: Sequence[Json]) -> None:
    """In every container, wherever it stands."""
    if isinstance(value, list):
        for each in value:
            _set_images(each, images)
    elif isinstance(value, dict):
        for name in ("containers", "initContainers"):
            for container in value.get(name) or ():
                if isinstance(container, dict) and isinstance(container.get("image"), str):
                    container["image"] = _image(container["image"], images)
        for each in value.values():
            _set_images(each, images)


def _image(image: str, images: Sequence[Json]) -> str:
    found = re.fullmatch(r"(?P<name>.+?)(?P<rest>(:[\w][\w.-]*)?(@sha256:[0-9a-f]+)?)", image)
    name, rest = (found["name"], found["rest"]) if found is not None else (image, "")
    for each in images:
        if each.get("name") == name:
            digest, tag = each.get("digest"), each.get("newTag")
            end = f"@{digest}" if digest else f":{tag}" if tag is not None else rest
            return f"{each.get('newName') or name}{end}"
    return image


def _patches(made: Json, files: Files, folder: str, where: str) -> Iterator[tuple[Any, Json]]:
    for each in made.get("patchesStrategicMerge") or ():
        path = _join(folder, str(each))
        for patch in _documents(files[path] if path in files else str(each).encode(), f"{where}: {each}"):
            yield patch, {}
    for each in [*(made.get("patches") or ()), *(made.get("patchesJson6902") or ())]:
        content = str(each.get("patch") or "").encode()
        if each.get("path"):
            path = _join(folder, str(each["path"]))
            if path not in files:
                raise SourceError(f"{where}: patches: {path} does not exist")
            content = files[path]
        for patch in _documents(content, f"{where}: patches"):
            yield patch, each.get("target") or {}


def _patched(objects: list[Json], patch: Any, target: Json, where: str) -> list[Json]:
    if not target and isinstance(patch, dict):
        meta = patch.get("metadata") or {}
        target = {"kind": patch.get("kind"), "name": meta.get("name"), "namespace": meta.get("namespace")}
    if set(target) & {"labelSelector", "annotationSelector"}:
        raise SourceError(f"{where}: patches: labelSelector and annotationSelector are not supported: use name")
    fitting = [each for each in objects if _fits(each, target)]
    if not fitting:
        raise SourceError(f"{where}: patches: no object fits {target}")
    made = []
    for each in objects:
        result = _apply(each, patch, where) if each in fitting else each
        if result:
            made.append(result)
    return made


def _fits(obj: Json, target: Json) -> bool:
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    meta = obj.get("metadata") or {}
    found = {"group": group, "version": version, "kind": obj.get("kind"), **meta}
    return all(
        re.fullmatch(str(target[key]), str(found.get(key) or "")) is not None
        for key in ("group", "version", "kind", "name", "namespace")
        if target.get(key)
    )


def _apply(obj: Json, patch: Any, where: str) -> Json:
    try:
        if isinstance(patch, list):
            result: Json = json_patch(obj, patch)
        elif (schema := _schema(str(obj["apiVersion"]), str(obj["kind"]))) is not None:
            result = strategic_merge(obj, patch, schema)
        else:
            result = merge_patch(obj, patch)
    except (PatchError, re.error) as error:
        raise SourceError(f"{where}: patches: {described(obj)}: {error}") from None
    if result and not (result.get("kind") and result.get("metadata")):
        raise SourceError(f"{where}: patches: {described(obj)}: the patch leaves no object")
    return result


@cache
def _schema(api_version: str, kind: str) -> Schema | None:
    """Of built-in kinds: which of their lists merge."""
    group, _, version = api_version.rpartition("/")
    name = f"io.k8s.api.{group.partition('.')[0] or 'core'}.{version}.{kind}"
    known = definitions()
    return Schema({"$ref": f"#/components/schemas/{name}"}, known) if name in known else None


def _yaml(content: bytes, where: str) -> Any:
    try:
        return yaml.load(content.decode())
    except (yaml.YamlError, UnicodeDecodeError) as error:
        raise SourceError(f"{where}: {error}") from None


def _documents(content: bytes, where: str) -> list[Any]:
    found = [
        _yaml(part.encode(), where) for part in re.split(r"^---\s*$", content.decode(errors="replace"), flags=re.M)
    ]
    return [each for each in found if each]
