"""Harvester's driver: a volume is a claim in the Harvester that runs the node's VM, plugged into the running VM."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import orjson

from homeport.client import kubeconfig
from homeport.client.config import Config, ConfigError
from homeport.client.errors import ApiError
from homeport.sim.machine.workload.kind import SECRET, Json
from homeport.sim.machine.workload.standin.csi.driver import HARVESTER, Caller, DriverError, NewVolume
from homeport.sim.machine.workload.standin.image import container_of, flag
from homeport.sim.machine.workload.standin.wire import ask

_POLLS, _POLL_SECONDS = 60, 1.0
_CODES = {401: "Unauthenticated", 403: "PermissionDenied", 404: "NotFound", 409: "Aborted", 422: "InvalidArgument"}


class HarvesterDriver:
    name: str = HARVESTER
    images: tuple[str, ...] = ("harvester-csi-driver", "rancher/harvester-csi-driver")
    sidecar: str = "csi-provisioner"
    secrets: tuple[str, ...] = ()

    async def create(self, caller: Caller, wanted: NewVolume) -> tuple[str, dict[str, str]]:
        api = _api(caller)
        spec: Json = {
            "accessModes": ["ReadWriteMany"],  # the VM has it wherever it runs
            "volumeMode": "Block",
            "resources": {"requests": {"storage": str(wanted.size_bytes)}},
        }
        container = container_of(caller.pod, *self.images) or {}
        if chosen := wanted.parameters.get("hostStorageClass") or flag(container, "host-storage-class"):
            spec["storageClassName"] = chosen
        if await api.get(api.claims(wanted.name)) is None:
            body = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": wanted.name},
                "spec": spec,
            }
            await api.send("POST", api.claims(), body)
        for _ in range(_POLLS):
            found = await api.get(api.claims(wanted.name)) or {}
            if (found.get("status") or {}).get("phase") == "Bound":
                return wanted.name, dict(wanted.parameters)
            await asyncio.sleep(_POLL_SECONDS)
        raise DriverError("DeadlineExceeded", f"PersistentVolumeClaim {api.namespace}/{wanted.name} is not Bound")

    async def delete(self, caller: Caller, handle: str) -> None:
        api = _api(caller)
        if await api.get(api.claims(handle)) is not None:
            await api.send("DELETE", api.claims(handle))

    async def expand(self, caller: Caller, handle: str, size_bytes: int) -> None:
        api = _api(caller)
        patch = {"spec": {"resources": {"requests": {"storage": str(size_bytes)}}}}
        await api.send("PATCH", api.claims(handle), patch, kind="application/merge-patch+json")

    async def attach(self, caller: Caller, handle: str, node: Json) -> None:
        api, name = _api(caller), node["metadata"]["name"]
        if handle not in await self._volumes(api, name):
            source = {"persistentVolumeClaim": {"claimName": handle, "hotpluggable": True}}
            body = {"name": handle, "disk": {"disk": {"bus": "scsi"}}, "volumeSource": source}
            await api.send("PUT", api.machines(name, "addvolume"), body)

    async def detach(self, caller: Caller, handle: str, node: Json | None) -> None:
        if node is None:
            return  # its VM is gone, and with it the plug
        api, name = _api(caller), node["metadata"]["name"]
        if handle in await self._volumes(api, name, gone_is_fine=True):
            await api.send("PUT", api.machines(name, "removevolume"), {"name": handle})

    async def _volumes(self, api: Api, name: str, *, gone_is_fine: bool = False) -> set[str]:
        found = await api.get(f"/apis/kubevirt.io/v1/namespaces/{api.namespace}/virtualmachines/{name}")
        if found is None:
            if gone_is_fine:
                return set()
            raise DriverError("NotFound", f"Harvester has no VirtualMachine {api.namespace}/{name}")
        return {str(each["name"]) for each in found["spec"]["template"]["spec"].get("volumes") or ()}


@dataclass(frozen=True, slots=True)
class Api:
    """Harvester's API as the driver's controller reaches it. All calls raise DriverError."""

    caller: Caller
    config: Config

    @property
    def namespace(self) -> str:
        return self.config.namespace

    def claims(self, name: str = "") -> str:
        path = f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims"
        return f"{path}/{name}" if name else path

    def machines(self, name: str, action: str) -> str:
        return f"/apis/subresources.kubevirt.io/v1/namespaces/{self.namespace}/virtualmachines/{name}/{action}"

    async def get(self, path: str) -> Json | None:
        """None if it is not there."""
        status, found = await self._call("GET", path, None, "")
        return None if status == 404 else found

    async def send(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> None:
        status, found = await self._call(method, path, body, kind)
        if status == 404:
            raise DriverError("NotFound", f"Harvester: {found.get('message') or path}")

    async def _call(self, method: str, path: str, body: Json | None, kind: str) -> tuple[int, Json]:
        url = urlsplit(self.config.server)
        host, port = url.hostname or "", url.port or 443
        try:
            header = await self.config.credential.header()
            named = {"accept": "application/json", **({"content-type": kind} if kind else {})}
            named |= {"authorization": header} if header else {}
            sock = await self.caller.cluster.network.connect(self.caller.host, host, port)
            data = b"" if body is None else orjson.dumps(body)
            answer = await ask(
                sock, _trusting(self.config), self.config.server_name or host, f"{method} {path}", named, data
            )
        except (OSError, ValueError, ApiError) as error:
            raise DriverError("Unavailable", f"Harvester {host}:{port}: {error}") from error
        found: Json = orjson.loads(answer.body) if answer.body else {}
        if answer.status >= 400 and answer.status != 404:
            text = f"Harvester: {found.get('message') or f'{method} {path}: HTTP {answer.status}'}"
            raise DriverError(_CODES.get(answer.status, "Internal"), text)
        return answer.status, found


def _trusting(config: Config) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=config.ca.decode()) if config.ca else ssl.create_default_context()
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate = config.credential.certificate()
    if certificate is not None:
        descriptor, path = tempfile.mkstemp()  # load_cert_chain reads files alone
        try:
            os.write(descriptor, certificate.key + b"\n" + certificate.cert)
            context.load_cert_chain(path)
        finally:
            os.close(descriptor)
            os.unlink(path)
    return context


def _api(caller: Caller) -> Api:
    """With the kubeconfig that is mounted into the controller. Raises DriverError."""
    for text in _mounted(caller):
        if b"clusters" in text and b"contexts" in text:
            try:
                file = Path("/etc/kubernetes/cloud-config")
                return Api(caller, kubeconfig.resolve(kubeconfig.merge([kubeconfig.parse(text, file)])))
            except ConfigError as error:
                raise DriverError("InvalidArgument", f"kubeconfig of Harvester: {error}") from error
    meta = caller.pod["metadata"]
    raise DriverError(
        "FailedPrecondition",
        f"Pod {meta['namespace']}/{meta['name']} mounts no Secret with a kubeconfig of Harvester",
    )


def _mounted(caller: Caller) -> Iterator[bytes]:
    namespace = caller.pod["metadata"]["namespace"]
    found = (each for each in caller.view.all(SECRET) if each["metadata"]["namespace"] == namespace)
    secrets = {each["metadata"]["name"]: each for each in found}
    for volume in caller.pod["spec"].get("volumes") or ():
        named = secrets.get((volume.get("secret") or {}).get("secretName", ""))
        for value in ((named or {}).get("data") or {}).values():
            yield base64.b64decode(value)
