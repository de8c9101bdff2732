"""The file of `homeport bootstrap`: manifests with a ClusterBootstrap, or the configuration file of butleradm."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from homeport.api.butler.v1alpha1 import GROUP, VERSION, ClusterBootstrap
from homeport.machinery import yaml
from homeport.machinery.manifest import ManifestError, parse_objects
from homeport.platforms.butler.name import SYSTEM_NAMESPACE
from homeport.platforms.butler.normal.bootstrap import BootstrapModel, normal_cluster_bootstrap

Json = dict[str, Any]
ReadFile = Callable[[str], str]  # a file that the configuration names; raises OSError

_KIND: Final = "ClusterBootstrap"
_TOP: Final = ("provider", "cluster", "network", "talos", "addons", "providerConfig")
_SUPPORTED: Final = ("harvester", "nutanix")
_NUTANIX: Final = ("endpoint", "port", "insecure", "clusterUUID", "subnetUUID", "imageUUID", "storageContainerUUID")
_HARVESTER: Final = ("namespace", "networkName", "imageName", "storageClassName")
# Kinds that have no namespace; everything else in a file is for butler-system unless it says otherwise.
_CLUSTER_WIDE: Final = frozenset({"Namespace", "ButlerConfig", "Team", "User"})


class FileError(ValueError):
    """A file that can't be used: names the field and says what to do."""


@dataclass(frozen=True, slots=True)
class BootstrapFile:
    """Everything that is applied, the ClusterBootstrap last."""

    objects: list[Json]
    model: BootstrapModel
    warnings: tuple[str, ...]

    @property
    def bootstrap(self) -> Json:
        return self.objects[-1]


def read_bootstrap_file(text: bytes, name: str, read: ReadFile) -> BootstrapFile:
    """Raises FileError."""
    try:
        documents = yaml.load_each(text, name)
        if not any(isinstance(each, dict) and "kind" in each for each in documents):
            found, warnings = _from_config(documents, name, read)
        else:
            found, warnings = parse_objects({name: text}), []
    except (yaml.YamlError, ManifestError) as error:
        raise FileError(str(error)) from error
    objects = _ordered([_placed(each) for each in found], name)
    try:
        bootstrap = msgspec.convert(objects[-1], ClusterBootstrap, strict=False)
    except msgspec.ValidationError as error:
        raise FileError(f"{name}: {_KIND}: {error}") from error
    normal = normal_cluster_bootstrap(bootstrap)
    if normal.model is None:
        raise FileError(f"{name}: {_KIND} {bootstrap.metadata.name}: {normal.text}")
    return BootstrapFile(objects, normal.model, (*warnings, *normal.warnings))


def _ordered(objects: Iterable[Json], name: str) -> list[Json]:
    listed = list(objects)
    ours = [each for each in listed if each["kind"] == _KIND]
    if len(ours) != 1:
        raise FileError(f"{name}: expected one {_KIND}, found {len(ours)}")
    return [*(each for each in listed if each["kind"] != _KIND), ours[0]]


def _placed(obj: Json) -> Json:
    meta = obj.get("metadata") or {}
    if meta.get("namespace") or obj["kind"] in _CLUSTER_WIDE:
        return obj
    return {**obj, "metadata": {**meta, "namespace": SYSTEM_NAMESPACE}}


# -- butleradm -------------------------------------------------------------------------------------------------------


def _from_config(documents: list[Any], name: str, read: ReadFile) -> tuple[list[Json], list[str]]:
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise FileError(f"{name}: expected manifests with a {_KIND}, or one document as butleradm reads it")
    config: Json = documents[0]
    _check_known(config, _TOP, "", name)
    type_, part = _provider(config, name)
    cluster = config.get("cluster") or {}
    if not isinstance(cluster, dict) or not cluster.get("name"):
        raise FileError(f"{name}: cluster.name is required, for example butler-mgmt")
    secret, site = _site(type_, part, name, read)
    spec: Json = {"provider": type_, "providerRef": {"name": type_, "namespace": SYSTEM_NAMESPACE}, "cluster": cluster}
    addons, warnings = _addons(config.get("addons") or {})
    spec |= {each: config[each] for each in ("network", "talos") if config.get(each)}
    spec |= {"addons": addons} if addons else {}
    provider_spec = {"provider": type_, "credentialsRef": {"name": secret["metadata"]["name"]}, type_: site}
    objects = [secret, _butler("ProviderConfig", type_, provider_spec), _butler(_KIND, str(cluster["name"]), spec)]
    return objects, warnings


def _provider(config: Json, name: str) -> tuple[str, Json]:
    parts = config.get("providerConfig") or {}
    type_ = str(config.get("provider") or (next(iter(parts)) if len(parts) == 1 else ""))
    if not type_:
        raise FileError(f"{name}: provider is required: nutanix or harvester")
    if type_ not in ("nutanix", "harvester"):
        raise FileError(
            f"{name}: provider: {type_} is not supported yet; the supported providers are harvester, nutanix"
        )
    part = parts.get(type_)
    if not isinstance(part, dict):
        raise FileError(f"{name}: providerConfig.{type_} is required: how the provider is reached")
    return type_, part


def _site(type_: str, part: Json, name: str, read: ReadFile) -> tuple[Json, Json]:
    """The Secret, and the provider's part of the ProviderConfig."""
    at = f"providerConfig.{type_}"
    if type_ == "nutanix":
        _check_known(part, (*_NUTANIX, "username", "password"), f"{at}.", name)
        data = {key: _text(part, key, at, name) for key in ("username", "password")}
        return _secret("nutanix-credentials", data), {key: part[key] for key in _NUTANIX if key in part}
    _check_known(part, (*_HARVESTER, "kubeconfigPath"), f"{at}.", name)
    path = _text(part, "kubeconfigPath", at, name)
    try:
        content = read(path)
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{name}: {at}.kubeconfigPath: {path} can't be read: {error}") from error
    return _secret("harvester-kubeconfig", {"kubeconfig": content}), {k: part[k] for k in _HARVESTER if k in part}


def _addons(given: Json) -> tuple[Json, list[str]]:
    """The console is not part of Homeport; its passwords must not end up in an object."""
    kept = {name: value for name, value in given.items() if name != "console"}
    return kept, ["addons.console has no effect: Homeport does not install a console"] if "console" in given else []


def _text(part: Mapping[str, Any], key: str, at: str, name: str) -> str:
    found = part.get(key)
    if not isinstance(found, str) or not found:
        raise FileError(f"{name}: {at}.{key} is required")
    return found


def _check_known(found: Mapping[str, Any], known: tuple[str, ...], prefix: str, name: str) -> None:
    for each in found:
        if each not in known:
            near = difflib.get_close_matches(str(each), known, n=1)
            advice = f"did you mean {prefix}{near[0]}?" if near else f"expected one of {', '.join(known)}"
            raise FileError(f"{name}: unknown field {prefix}{each}: {advice}")


def _secret(name: str, data: Mapping[str, str]) -> Json:
    meta = {"name": name, "namespace": SYSTEM_NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": dict(data)}


def _butler(kind: str, name: str, spec: Json) -> Json:
    meta = {"name": name, "namespace": SYSTEM_NAMESPACE}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": meta, "spec": spec}
