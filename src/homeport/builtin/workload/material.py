"""What a container refers to: environment and volumes from ConfigMaps, Secrets and its Pod, looked up."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any

from homeport.api.meta import Resource
from homeport.client.absence import find_object
from homeport.client.errors import ApiError
from homeport.client.protocol import Key
from homeport.runtime.workload.runner import Mount

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
SECRET = Resource("", "v1", "Secret", "secrets")
ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts")
_VARIABLE = re.compile(r"\$(\$|\(([A-Za-z_.\-][A-Za-z0-9_.\-]*)\))")


class MissingMaterial(Exception):
    """Something that the container needs is not there (yet)."""


class Material:
    """Looks things up for the containers of one Pod. `pod` has its address in the status already."""

    def __init__(self, client: Any, pod: Mapping[str, Any]) -> None:
        self._client = client
        self._pod = pod
        self._found: dict[tuple[str, str], dict[str, bytes] | None] = {}

    @property
    def _namespace(self) -> str:
        return str(self._pod["metadata"]["namespace"])

    # -- environment --------------------------------------------------------------------------------------------

    async def env(self, container: Mapping[str, Any]) -> dict[str, str]:
        values: dict[str, str] = {}
        for source in container.get("envFrom") or ():
            prefix = source.get("prefix", "")
            for kind, field in ((CONFIG_MAP, "configMapRef"), (SECRET, "secretRef")):
                if field in source:
                    data = await self._data(kind, source[field]["name"], bool(source[field].get("optional")))
                    values.update({f"{prefix}{k}": v.decode(errors="replace") for k, v in (data or {}).items()})
        for each in container.get("env") or ():
            value = await self._value(each, container, values)
            if value is not None:
                values[each["name"]] = value
        return values

    async def _value(
        self, each: Mapping[str, Any], container: Mapping[str, Any], values: Mapping[str, str]
    ) -> str | None:
        source = each.get("valueFrom")
        if source is None:
            return expand(str(each.get("value") or ""), values)
        if "fieldRef" in source:
            return field_of(self._pod, source["fieldRef"]["fieldPath"])
        if "resourceFieldRef" in source:
            return _resource_of(container, source["resourceFieldRef"]["resource"])
        for kind, field in ((CONFIG_MAP, "configMapKeyRef"), (SECRET, "secretKeyRef")):
            if field in source:
                ref = source[field]
                data = await self._data(kind, ref["name"], bool(ref.get("optional")))
                if data is None or ref["key"] not in data:
                    if ref.get("optional"):
                        return None
                    raise MissingMaterial(
                        f"couldn't find key {ref['key']} in {kind.kind} {self._namespace}/{ref['name']}"
                    )
                return data[ref["key"]].decode(errors="replace")
        return None

    # -- volumes ------------------------------------------------------------------------------------------------

    async def mounts(self, container: Mapping[str, Any]) -> list[Mount]:
        volumes = {volume["name"]: volume for volume in (self._pod["spec"].get("volumes") or ())}
        return [
            await self._mount(mount, volumes[mount["name"]])
            for mount in container.get("volumeMounts") or ()
            if mount["name"] in volumes
        ]

    async def _mount(self, mount: Mapping[str, Any], volume: Mapping[str, Any]) -> Mount:
        path, read_only = str(mount["mountPath"]), bool(mount.get("readOnly"))
        if "persistentVolumeClaim" in volume:
            return Mount(path, "claim", volume["persistentVolumeClaim"]["claimName"], {}, read_only)
        if "hostPath" in volume:
            return Mount(path, "host", volume["hostPath"]["path"], {}, read_only)
        files = await self._files(volume)
        if files is None:
            return Mount(path, "empty", volume["name"], {}, read_only)
        if part := mount.get("subPath"):
            if part in files:  # one file, mounted under another name
                folder, _, name = path.rpartition("/")
                return Mount(folder or "/", "files", volume["name"], {name: files[part]}, True)
            files = {k[len(part) + 1 :]: v for k, v in files.items() if k.startswith(f"{part}/")}
        return Mount(path, "files", volume["name"], files, True)

    async def _files(self, volume: Mapping[str, Any]) -> dict[str, bytes] | None:
        """None: not a volume with content of its own."""
        if "configMap" in volume:
            return await self._chosen(CONFIG_MAP, volume["configMap"], volume["configMap"].get("name", ""))
        if "secret" in volume:
            return await self._chosen(SECRET, volume["secret"], volume["secret"].get("secretName", ""))
        if "downwardAPI" in volume:
            return self._downward(volume["downwardAPI"])
        if "projected" in volume:
            files: dict[str, bytes] = {}
            for source in volume["projected"].get("sources") or ():
                files |= await self._projected(source)
            return files
        return None

    async def _projected(self, source: Mapping[str, Any]) -> dict[str, bytes]:
        if "configMap" in source:
            return await self._chosen(CONFIG_MAP, source["configMap"], source["configMap"].get("name", ""))
        if "secret" in source:
            return await self._chosen(SECRET, source["secret"], source["secret"].get("name", ""))
        if "downwardAPI" in source:
            return self._downward(source["downwardAPI"])
        if "serviceAccountToken" in source:
            return await self._token(source["serviceAccountToken"])
        return {}

    async def _token(self, source: Mapping[str, Any]) -> dict[str, bytes]:
        name = self._pod["spec"].get("serviceAccountName") or "default"
        spec: dict[str, Any] = {"expirationSeconds": source.get("expirationSeconds") or 3600}
        if source.get("audience"):
            spec["audiences"] = [source["audience"]]
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        try:
            made = await self._client.create(body, kind=ACCOUNT, key=Key(self._namespace, name), subresource="token")
        except ApiError as error:
            raise MissingMaterial(f"no token for ServiceAccount {self._namespace}/{name}: {error}") from error
        return {source["path"]: str(made["status"]["token"]).encode()}

    def _downward(self, source: Mapping[str, Any]) -> dict[str, bytes]:
        return {
            item["path"]: field_of(self._pod, item["fieldRef"]["fieldPath"]).encode()
            for item in source.get("items") or ()
            if "fieldRef" in item
        }

    async def _chosen(self, kind: Resource, source: Mapping[str, Any], name: str) -> dict[str, bytes]:
        data = await self._data(kind, name, bool(source.get("optional"))) or {}
        items = source.get("items")
        if not items:
            return data
        for item in items:
            if item["key"] not in data and not source.get("optional"):
                raise MissingMaterial(f"references non-existent {kind.kind.lower()} key: {item['key']} of {name}")
        return {item["path"]: data[item["key"]] for item in items if item["key"] in data}

    async def _data(self, kind: Resource, name: str, optional: bool) -> dict[str, bytes] | None:
        key = (kind.plural, name)
        if key not in self._found:
            self._found[key] = await self._fetch(kind, name)
        found = self._found[key]
        if found is None and not optional:
            raise MissingMaterial(f'{kind.plural[:-1]} "{name}" not found')
        return found

    async def _fetch(self, kind: Resource, name: str) -> dict[str, bytes] | None:
        obj = await find_object(self._client, kind, Key(self._namespace, name))
        if obj is None:
            return None
        if kind is SECRET:
            return {k: base64.b64decode(v) for k, v in (obj.get("data") or {}).items()}
        plain = {k: str(v).encode() for k, v in (obj.get("data") or {}).items()}
        return plain | {k: base64.b64decode(v) for k, v in (obj.get("binaryData") or {}).items()}


def command_of(container: Mapping[str, Any], env: Mapping[str, str]) -> list[str]:
    words: Sequence[str] = [*(container.get("command") or ()), *(container.get("args") or ())]
    return [expand(word, env) for word in words]


def expand(text: str, values: Mapping[str, str]) -> str:
    """`$(NAME)` by its value; unknown ones stay as they are, and `$$` is a dollar."""

    def replace(found: re.Match[str]) -> str:
        if found[1] == "$":
            return "$"
        return values.get(found[2], found[0])

    return _VARIABLE.sub(replace, text)


def field_of(pod: Mapping[str, Any], path: str) -> str:
    """The fields that Kubernetes lets a container see of its Pod."""
    meta = pod["metadata"]
    for part in ("labels", "annotations"):
        if path == f"metadata.{part}":
            return "\n".join(f'{k}="{v}"' for k, v in sorted((meta.get(part) or {}).items()))
        if path.startswith(f"metadata.{part}["):
            return str((meta.get(part) or {}).get(path.split("'")[1] if "'" in path else path.split('"')[1], ""))
    value: Any = pod
    for step in path.split("."):
        value = (value or {}).get(step, "") if isinstance(value, Mapping) else ""
    return ",".join(ip["ip"] for ip in value) if isinstance(value, list) else str(value)


def _resource_of(container: Mapping[str, Any], path: str) -> str:
    part, _, name = path.partition(".")
    return str(((container.get("resources") or {}).get(part) or {}).get(name, "0"))
