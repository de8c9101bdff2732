"""The SSH key pair of a cluster, kept as upstream keeps it, and the user of its machines that the key opens.

The Secret belongs to the KubevirtCluster: it moves and goes with it.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from homeport.api.kubevirt.v1alpha1 import KubevirtCluster
from homeport.api.meta import Unstructured
from homeport.capi.name import CLUSTER_NAME_LABEL, label_value
from homeport.capi.object.ownership import owner_reference
from homeport.client.absence import find_object
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.infra.error import Misconfigured, Missing
from homeport.infra.machine.userdata import is_cloud_config
from homeport.providers.harvester.infracluster.resource import SECRET

USER = "capk"
SUCCESS_FILE = "/run/cluster-api/bootstrap-success.complete"
COMMAND = f"cat {SUCCESS_FILE}"
_PUBLIC, _PRIVATE = "pub", "key"
_WRITE = Write(field_manager="homeport-harvester")
_USERS = re.compile(r"^users:[ \t]*(?:#[^\n]*)?\n(?P<indent>[ \t]*)-", re.MULTILINE)
_OTHER_USERS = re.compile(r"^['\"]?users['\"]?[ \t]*:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class KeyPair:
    public: str  # as in authorized_keys
    private: bytes = field(repr=False)


class SshKeys:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def ensure(self, infra: KubevirtCluster) -> KeyPair:
        """Raises Missing or Misconfigured for a Secret of the user."""
        found = await self._find(infra)
        if found is None and _name(infra) == _own_name(infra):
            try:
                found = await self._client.create(_render(infra), _WRITE, kind=SECRET)
            except AlreadyExists:  # another machine was faster
                found = await self._find(infra)
        if found is None:
            raise _missing(infra)
        pair = _pair(found, infra)
        if _name(infra) == _own_name(infra) and not _is_owned(found, infra):
            # That of a cluster of the same name that is gone: it would be deleted with that one.
            body = {"metadata": {"uid": found.uid, "ownerReferences": [owner_reference(infra)]}}
            await self._client.patch(SECRET, Key(found.namespace, found.name), MergePatch(body), _WRITE)
        return pair

    async def get(self, infra: KubevirtCluster) -> KeyPair:
        found = await self._find(infra)
        if found is None:
            raise _missing(infra)
        return _pair(found, infra)

    async def _find(self, infra: KubevirtCluster) -> Unstructured | None:
        return await find_object(self._client, SECRET, Key(infra.metadata.namespace, _name(infra)))


def _missing(infra: KubevirtCluster) -> Missing:
    key = Key(infra.metadata.namespace, _name(infra))
    text = "create it with an SSH key pair at `pub` and `key`, or remove spec.sshKeys"
    return Missing(f"{_field(infra)}: Secret {key} does not exist: {text}")


def _is_owned(secret: Unstructured, infra: KubevirtCluster) -> bool:
    return any(each.get("uid") == infra.metadata.uid for each in secret.metadata.get("ownerReferences") or ())


def _own_name(infra: KubevirtCluster) -> str:
    return f"{infra.metadata.name}-ssh-keys"


def _name(infra: KubevirtCluster) -> str:
    given = infra.spec.ssh_keys
    return (given.data_secret_name if given is not None else None) or _own_name(infra)


def _field(infra: KubevirtCluster) -> str:
    return f"KubevirtCluster {infra.metadata.name}: spec.sshKeys.dataSecretName"


def _pair(secret: Unstructured, infra: KubevirtCluster) -> KeyPair:
    data = secret.get("data") or {}
    try:
        public, private = (base64.b64decode(data.get(name) or "") for name in (_PUBLIC, _PRIVATE))
        words = public.decode("ascii").split()
    except ValueError:
        words, private = [], b""
    if len(words) < 2 or not private.strip() or not re.fullmatch(r"[A-Za-z0-9@._-]+", words[0]):
        text = f"Secret {secret.namespace}/{secret.name} has no SSH key pair at `pub` and `key`"
        raise Misconfigured(f"{_field(infra)}: {text}: write it there in the form of OpenSSH, or delete the Secret")
    return KeyPair(" ".join(words[:2]), private)


def _render(infra: KubevirtCluster) -> dict[str, Any]:
    key = ec.generate_private_key(ec.SECP384R1())
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    cluster = infra.metadata.labels.get(CLUSTER_NAME_LABEL) or label_value(infra.metadata.name)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": _own_name(infra),
            "namespace": infra.metadata.namespace,
            "labels": {CLUSTER_NAME_LABEL: cluster},
            "ownerReferences": [owner_reference(infra)],
        },
        "type": "cluster.x-k8s.io/secret",
        "data": {
            _PUBLIC: base64.b64encode(public + b"\n").decode(),
            _PRIVATE: base64.b64encode(private).decode(),
        },
    }


def with_user(data: bytes, public: str) -> bytes | None:
    """Cloud-config with a user who can read the success file by SSH, and do nothing else. None: it is in a format that
    can't be extended. Inserted as text: parsing and rewriting a template would change its expressions."""
    if not is_cloud_config(data):
        return None
    text = data.decode("utf-8", errors="replace")
    found = _USERS.search(text)
    if found is None and _OTHER_USERS.search(text):
        return None
    indent = found.group("indent") if found else ""
    lines = (
        f"- name: {USER}",
        "  gecos: reads the result of the bootstrap",
        "  lock_passwd: true",
        "  shell: /bin/sh",
        "  ssh_authorized_keys:",
        f"  - 'restrict,command=\"{COMMAND}\" {public}'",
    )
    block = "".join(f"{indent}{line}\n" for line in lines)
    if found is not None:
        start = found.start("indent")
        return (text[:start] + block + text[start:]).encode()
    return f"{text.rstrip(chr(10))}\nusers:\n- default\n{block}".encode()
