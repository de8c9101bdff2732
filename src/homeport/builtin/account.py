"""ServiceAccounts: a default one and the root CA in every namespace, tokens for Secrets that ask for one."""

from __future__ import annotations

import base64
from typing import Any

import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.embedded import EmbeddedServer
from homeport.builtin.namespace import NAMESPACE
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Key, MergePatch, Write
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)

ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
SECRET = Resource("", "v1", "Secret", "secrets")
ROOT_CA = "kube-root-ca.crt"
TOKEN_TYPE = "kubernetes.io/service-account-token"  # noqa: S105  (a type's name)
NAME_ANNOTATION = "kubernetes.io/service-account.name"
UID_ANNOTATION = "kubernetes.io/service-account.uid"
_WRITE = Write(field_manager="serviceaccount-controller")


class NamespaceContent:
    """What every living namespace has."""

    def __init__(self, server: EmbeddedServer, client: Any) -> None:
        self._server = server
        self._client = client

    async def reconcile(self, key: Key) -> Wait | None:
        try:
            namespace = await self._client.get(NAMESPACE, key)
        except NotFound:
            return None
        if namespace.metadata.get("deletionTimestamp"):
            return None
        await self._hold_account(key.name)
        await self._hold_root_ca(key.name)
        return None

    async def _hold_account(self, namespace: str) -> None:
        try:
            await self._client.get(ACCOUNT, Key(namespace, "default"))
        except NotFound:
            account = {"metadata": {"name": "default", "namespace": namespace}}
            await _create(self._client, account, ACCOUNT)

    async def _hold_root_ca(self, namespace: str) -> None:
        wanted = {"ca.crt": self._server.pki.ca_pem.decode()}
        try:
            found = await self._client.get(CONFIG_MAP, Key(namespace, ROOT_CA))
        except NotFound:
            body = {"metadata": {"name": ROOT_CA, "namespace": namespace}, "data": wanted}
            await _create(self._client, body, CONFIG_MAP)
            return
        if found.get("data") != wanted:
            await self._client.patch(CONFIG_MAP, Key(namespace, ROOT_CA), MergePatch({"data": wanted}), _WRITE)


async def _create(client: Any, body: dict[str, Any], kind: Resource) -> None:
    try:
        await client.create(body, _WRITE, kind=kind)
    except AlreadyExists:
        log.debug("somebody was faster", kind=kind.kind, object=body["metadata"]["name"])


class TokenSecrets:
    """Secrets of type service-account-token get a token; those whose account is gone are deleted."""

    def __init__(self, server: EmbeddedServer, client: Any) -> None:
        self._server = server
        self._client = client

    async def reconcile(self, key: Key) -> Wait | None:
        try:
            secret = await self._client.get(SECRET, key)
        except NotFound:
            return None
        if secret.get("type") != TOKEN_TYPE or secret.metadata.get("deletionTimestamp"):
            return None
        annotations = secret.metadata.get("annotations") or {}
        account = await self._account(key.namespace, annotations.get(NAME_ANNOTATION, ""))
        uid = annotations.get(UID_ANNOTATION)
        if account is None or (uid and uid != account.uid):
            if uid:
                await self._client.delete(SECRET, key, uid=secret.uid)
                return None
            return Wait("ServiceAccountNotFound", f"no ServiceAccount {annotations.get(NAME_ANNOTATION)!r}")
        await self._fill(key, secret, account)
        return None

    async def _account(self, namespace: str, name: str) -> Unstructured | None:
        try:
            found: Unstructured = await self._client.get(ACCOUNT, Key(namespace, name))
        except NotFound:
            return None
        return found

    async def _fill(self, key: Key, secret: Unstructured, account: Unstructured) -> None:
        data = secret.get("data") or {}
        if all(data.get(field) for field in ("token", "ca.crt", "namespace")):
            return
        token = self._server.accounts.issue_for_secret(account, secret)
        values = {"token": token, "ca.crt": self._server.pki.ca_pem.decode(), "namespace": key.namespace}
        patch = {
            "metadata": {"annotations": {UID_ANNOTATION: account.uid}},
            "data": {name: base64.b64encode(text.encode()).decode() for name, text in values.items()},
        }
        await self._client.patch(SECRET, key, MergePatch(patch), _WRITE)


def install(server: EmbeddedServer, manager: Manager) -> None:
    content = Controller("namespace-content", NAMESPACE, NamespaceContent(server, manager.client), clock=manager.clock)
    content.map(ACCOUNT, _namespace_of, predicate=_went)
    content.map(CONFIG_MAP, _namespace_of, predicate=_root_ca)
    manager.add(content)
    tokens = Controller("token-secret", SECRET, TokenSecrets(server, manager.client), clock=manager.clock)
    secrets = manager.informers.get(SECRET).cache
    tokens.map(ACCOUNT, lambda account: _token_secrets(secrets, account))
    manager.add(tokens)


def _namespace_of(obj: Unstructured) -> list[Key]:
    return [Key("", obj.namespace)]


def _went(old: Any, new: Any) -> bool:
    return new is None


def _root_ca(old: Any, new: Any) -> bool:
    return (new or old).name == ROOT_CA and old is not None


def _token_secrets(cache: Any, account: Unstructured) -> list[Key]:
    return [
        Key(secret.namespace, secret.name)
        for secret in cache.list(account.namespace)
        if secret.get("type") == TOKEN_TYPE
        and (secret.metadata.get("annotations") or {}).get(NAME_ANNOTATION) == account.name
    ]
