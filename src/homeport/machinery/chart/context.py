"""What templates see: .Chart, .Files, .Capabilities, .Release, .Template, .Subcharts and .Values."""

from __future__ import annotations

import base64
import posixpath
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from homeport.machinery.chart.function.yamltext import to_yaml
from homeport.machinery.chart.model import Chart, Dependency, Json, Maintainer, Metadata
from homeport.machinery.chart.pattern import BadPattern, glob
from homeport.machinery.chart.values import table
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.value import Bytes, StringMap, Strings, Struct, text_of

Method = tuple[tuple[str, ...], Any]
HELM_VERSION: Final = "v4.3.1"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ReleaseInfo:
    """Which release a chart is rendered for.

    `time` is what `now` gives and what certificates are dated by: render again with the same time to get the same text.
    `seed` is a secret of the release, made once and kept with it: passwords and keys are derived from it.
    """

    name: str
    namespace: str = "default"
    revision: int = 1
    is_install: bool = True
    is_upgrade: bool = False
    time: datetime = _EPOCH
    seed: bytes = b""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The cluster that a chart is rendered for. `helm_version` also decides whose rules apply: Helm 3's or Helm 4's."""

    kube_version: str = "v1.37.0"
    api_versions: tuple[str, ...] = ()
    helm_version: str = HELM_VERSION

    @property
    def major(self) -> int:
        return 3 if self.helm_version.lstrip("v").startswith("3.") else 4


class Values(Json):
    """The named map type of Helm: it has methods, and some functions take it for no map."""

    type_name = "common.Values"

    def method(self, name: str) -> Method | None:
        methods: dict[str, Method] = {
            "AsMap": ((), lambda: dict(self)),
            "YAML": ((), lambda: to_yaml(self) + "\n"),
            "Table": (("string",), self._table),
            "PathValue": (("string",), self._path_value),
        }
        return methods.get(name)

    def _table(self, path: str) -> Values:
        found = table(self, path)
        if found is None:
            raise CallError(f"{path!r} is not a map")
        return type(self)(found)

    def _path_value(self, path: str) -> Any:
        before, _, key = path.rpartition(".")
        found = table(self, before) if before else self
        if found is None or key not in found or isinstance(found[key], dict):
            raise CallError(f"{path!r} is not a value")
        return found[key]


class OldValues(Values):
    type_name = "chartutil.Values"


class Files(dict[str, Bytes]):
    """.Files: the files of a chart that are neither templates nor values."""

    type_name = "engine.files"
    absent = Bytes()

    def method(self, name: str) -> Method | None:
        methods: dict[str, Method] = {
            "Get": (("string",), lambda path: text_of(self.get(path, b""))),
            "GetBytes": (("string",), lambda path: self.get(path, Bytes())),
            "Glob": (("string",), self._glob),
            "Lines": (("string",), self._lines),
            "AsConfig": ((), lambda: to_yaml({_base(path): text_of(content) for path, content in self.items()})),
            "AsSecrets": ((), lambda: to_yaml({_base(p): base64.b64encode(c).decode() for p, c in self.items()})),
        }
        return methods.get(name)

    def _glob(self, pattern: str) -> Files:
        try:
            matches = glob(pattern)
        except BadPattern:  # to Helm, such a pattern means all files
            matches = glob("**")
        return Files({path: content for path, content in self.items() if matches(path)})

    def _lines(self, path: str) -> Strings:
        content = text_of(self.get(path, b""))
        return Strings(content.removesuffix("\n").split("\n")) if content else Strings()


def _base(path: str) -> str:
    return posixpath.basename(path)


class _VersionSet(Strings):
    def method(self, name: str) -> Method | None:
        return (("string",), lambda version: version in self) if name == "Has" else None


class _NewVersionSet(_VersionSet):
    type_name = "common.VersionSet"


class _OldVersionSet(_VersionSet):
    type_name = "chartutil.VersionSet"


class _KubeVersion(Struct):
    def method(self, name: str) -> Method | None:
        return {"String": ((), lambda: str(self)), "GitVersion": ((), lambda: self.fields["Version"])}.get(name)

    def __str__(self) -> str:
        return str(self.fields.get("normalizedVersion", self.fields["Version"]))


def _named(name: str, fields: Json, keys: dict[str, str] | None = None) -> Struct:
    made = Struct(fields, keys)
    made.type_name = name
    return made


def capabilities_of(given: Capabilities) -> Struct:
    package = "chartutil" if given.major == 3 else "common"
    version = "v" + given.kube_version.removeprefix("v")
    plain = version.partition("-")[0].partition("+")[0]
    major, minor = (*plain.removeprefix("v").split("."), "", "")[:2]
    fields: Json = {"Version": plain} if given.major == 3 else {"Version": version, "normalizedVersion": plain}
    kube = _KubeVersion({**fields, "Major": major, "Minor": minor}, {key: key for key in ("Version", "Major", "Minor")})
    kube.type_name = f"{package}.KubeVersion"
    versions = (_OldVersionSet if given.major == 3 else _NewVersionSet)(given.api_versions)
    build: Json = {"Version": given.helm_version, "GitCommit": "", "GitTreeState": "", "GoVersion": ""}
    if given.major > 3:
        build["KubeClientVersion"] = ""
    helm = _named("version.BuildInfo", build, {"Version": "version", "GoVersion": "go_version"})
    made: Json = {"KubeVersion": kube, "APIVersions": versions, "HelmVersion": helm}
    return _named(f"*{package}.Capabilities", made, {key: key for key in made})


def plain_kube_version(given: Capabilities) -> str:
    return str(capabilities_of(given).fields["KubeVersion"])


def release_of(given: ReleaseInfo) -> Json:
    return {
        "Name": given.name,
        "Namespace": given.namespace,
        "IsUpgrade": given.is_upgrade,
        "IsInstall": given.is_install,
        "Revision": given.revision,
        "Service": "Helm",
    }


# -- .Chart ------------------------------------------------------------------------------------------------------------

_KEYS: Final = {
    "Name": "name", "Home": "home", "Sources": "sources", "Version": "version", "Description": "description",
    "Keywords": "keywords", "Maintainers": "maintainers", "Icon": "icon", "APIVersion": "apiVersion",
    "Condition": "condition", "Tags": "tags", "AppVersion": "appVersion", "Deprecated": "deprecated",
    "Annotations": "annotations", "KubeVersion": "kubeVersion", "Dependencies": "dependencies", "Type": "type",
}  # fmt: skip
_DEPENDENCY_KEYS: Final = {
    "Name": "name", "Version": "version", "Repository": "repository", "Condition": "condition", "Tags": "tags",
    "Enabled": "enabled", "ImportValues": "import-values", "Alias": "alias",
}  # fmt: skip


def chart_of(chart: Chart, major: int) -> Struct | Json:
    """A struct in Helm 3, a map in Helm 4."""
    fields = _metadata(chart.metadata, major)
    if major > 3:
        return {**fields, "IsRoot": chart.is_root}
    name = "struct { chart.Metadata; IsRoot bool }"
    return _named(name, {**fields, "IsRoot": chart.is_root}, {**_KEYS, "IsRoot": "IsRoot"})


def _metadata(metadata: Metadata, major: int) -> Json:
    plain = Strings if major == 3 else list
    return {
        "Name": metadata.name,
        "Home": metadata.home,
        "Sources": plain(metadata.sources),
        "Version": metadata.version,
        "Description": metadata.description,
        "Keywords": plain(metadata.keywords),
        "Maintainers": [_maintainer(each, major) for each in metadata.maintainers],
        "Icon": metadata.icon,
        "APIVersion": metadata.api_version,
        "Condition": metadata.condition,
        "Tags": metadata.tags,
        "AppVersion": metadata.app_version,
        "Deprecated": metadata.deprecated,
        "Annotations": StringMap(metadata.annotations),
        "KubeVersion": metadata.kube_version,
        "Dependencies": [_dependency(each, major) for each in metadata.dependencies or []],
        "Type": metadata.type,
    }


def _maintainer(given: Maintainer, major: int) -> Struct | Json:
    fields: Json = {"Name": given.name, "Email": given.email, "URL": given.url}
    keys = {"Name": "name", "Email": "email", "URL": "url"}
    return _named("*chart.Maintainer", fields, keys) if major == 3 else fields


def _dependency(given: Dependency, major: int) -> Struct | Json:
    fields: Json = {
        "Name": given.name,
        "Version": given.version,
        "Repository": given.repository,
        "Condition": given.condition,
        "Tags": Strings(given.tags) if major == 3 else list(given.tags),
        "Enabled": given.enabled,
        "ImportValues": list(given.import_values),
        "Alias": given.alias,
    }
    return _named("*chart.Dependency", fields, _DEPENDENCY_KEYS) if major == 3 else fields
