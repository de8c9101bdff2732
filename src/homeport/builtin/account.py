"""ServiceAccounts: a default one and the root CA in every namespace, tokens for Secrets that ask for one."""

from __future__ import annotations

import base64
from typing import Any

import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.embedded import EmbeddedServer
from homeport.builtin.namespace import NAMESPACE
from homeport.client.absence import find_object
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Key, MergePatch, Query, Write
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
        namespace = await find_object(self._client, NAMESPACE, key)
        if namespace is None:
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
        data = found.get("data") or {}
        if data != wanted:
            change = {"data": {**dict.fromkeys(data), **wanted}}  # null takes away what somebody added
            await self._client.patch(CONFIG_MAP, Key(namespace, ROOT_CA), MergePatch(change), _WRITE)


async def _create(client: Any, body: dict[str, Any], kind: Resource) -> None:
    try:
        await client.create(body, _WRITE, kind=kind)
    except AlreadyExists:
        log.debug("another client created it first", kind=kind.kind, object=body["metadata"]["name"])


class TokenSecrets:
    """Secrets of type service-account-token get a token; those whose account is gone are deleted.

    One whose account has not been there yet waits for it, where Kubernetes deletes it: the order in which the two are
    made does not matter here.
    """

    def __init__(self, server: EmbeddedServer, client: Any) -> None:
        self._server = server
        self._client = client

    async def reconcile(self, key: Key) -> Wait | None:
        secret = await find_object(self._client, SECRET, key)
        if secret is None:
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
        wanted = {"ca.crt": _encode(self._server.pki.ca_pem.decode()), "namespace": _encode(key.namespace)}
        if not data.get("token"):
            wanted["token"] = _encode(self._server.accounts.issue_for_secret(account, secret))
        uid = (secret.metadata.get("annotations") or {}).get(UID_ANNOTATION)
        if uid == account.uid and all(data.get(name) == text for name, text in wanted.items()):
            return
        patch = {"metadata": {"annotations": {UID_ANNOTATION: account.uid}}, "data": wanted}
        await self._client.patch(SECRET, key, MergePatch(patch), _WRITE)


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def install(server: EmbeddedServer, manager: Manager) -> None:
    content = Controller("namespace-content", NAMESPACE, NamespaceContent(server, manager.client), clock=manager.clock)
    content.map(ACCOUNT, _namespace_of, predicate=_went)
    content.map(CONFIG_MAP, _namespace_of, predicate=_root_ca)
    manager.add(content)
    query = Query(fields=f"type={TOKEN_TYPE}")  # no other Secrets: they are not needed here
    tokens = Controller("token-secret", SECRET, TokenSecrets(server, manager.client), query=query, clock=manager.clock)
    secrets = manager.informers.get(SECRET, query).cache
    secrets.add_index("account", _account_of)
    tokens.map(ACCOUNT, lambda account: _token_secrets(secrets, account), predicate=_came_or_went)
    manager.add(tokens)


def _namespace_of(obj: Unstructured) -> list[Key]:
    return [Key("", obj.namespace)]


def _went(old: Any, new: Any) -> bool:
    return new is None


def _root_ca(old: Any, new: Any) -> bool:
    return (new or old).name == ROOT_CA and old is not None


def _came_or_went(old: Any, new: Any) -> bool:
    return old is None or new is None


def _account_of(secret: Unstructured) -> list[str]:
    return [f"{secret.namespace}/{(secret.metadata.get('annotations') or {}).get(NAME_ANNOTATION, '')}"]


def _token_secrets(cache: Any, account: Unstructured) -> list[Key]:
    found = cache.by("account", f"{account.namespace}/{account.name}")
    return [Key(secret.namespace, secret.name) for secret in found]
