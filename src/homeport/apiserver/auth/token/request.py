"""serviceaccounts/NAME/token: a TokenRequest is answered with a token for the account."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache

from homeport.apiserver.auth.source import Json, read
from homeport.apiserver.auth.token.serviceaccount import BoundObject, ServiceAccounts
from homeport.apiserver.kinds.load import definitions
from homeport.apiserver.registry import Call, Registry
from homeport.client.errors import BadRequest, Cause, conflict, invalid, not_found
from homeport.machinery.apply import managed
from homeport.machinery.schema.node import Schema
from homeport.store import Store

API_VERSION = "authentication.k8s.io/v1"
DEFAULT_SECONDS = 3600
MIN_SECONDS = 600
MAX_SECONDS = 1 << 32

_BINDABLE = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


@cache
def _schema() -> Schema:
    known = definitions()
    return Schema(known["io.k8s.api.authentication.v1.TokenRequest"], known)


class TokenRequests:
    def __init__(self, accounts: ServiceAccounts, store: Store, now: Callable[[], str]) -> None:
        self._accounts = accounts
        self._store = store
        self._now = now

    def install(self, registry: Registry) -> None:
        registry.connect("", "serviceaccounts", "token", self.answer, "POST")

    async def answer(self, call: Call) -> Json:
        account = read(self._store, "serviceaccounts", call.namespace, call.name)
        if account is None:
            raise not_found("", "serviceaccounts", call.name)
        body = _checked(call)
        spec = body.get("spec") or {}
        seconds = _seconds(spec.get("expirationSeconds"))
        audiences = _audiences(spec.get("audiences"))
        bound = self._bound(call, spec.get("boundObjectRef"))
        token, expires = self._accounts.issue(account, audiences=audiences, seconds=seconds, bound=bound)
        answer = self._tracked(call, account["metadata"]["uid"], spec)
        answer["spec"] = {
            "audiences": audiences or list(self._accounts.audiences),
            "expirationSeconds": seconds,
            "boundObjectRef": spec.get("boundObjectRef"),
        }
        answer["status"] = {
            "token": token,
            "expirationTimestamp": datetime.fromtimestamp(expires, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return answer

    def _tracked(self, call: Call, uid: str, spec: Json) -> Json:
        """The request as an object, with the fields that the caller manages."""
        metadata = {
            "name": call.name,
            "namespace": call.namespace,
            "uid": uid,
            "creationTimestamp": self._now(),
        }
        made: Json = {"kind": "TokenRequest", "apiVersion": API_VERSION, "metadata": metadata, "spec": spec}
        managed.update(
            None,
            made,
            schema=_schema(),
            api_version=API_VERSION,
            manager=call.ctx.manager,
            time=self._now(),
            subresource="token",
            status=False,
        )
        return made

    def _bound(self, call: Call, reference: object) -> list[BoundObject]:
        if reference is None:
            return []
        if not isinstance(reference, dict):
            raise BadRequest("spec.boundObjectRef must be an object")
        kind, version = reference.get("kind") or "", reference.get("apiVersion") or ""
        if kind not in _BINDABLE or version != "v1":
            group, _, number = version.rpartition("/")
            raise BadRequest(f"cannot bind token to object of type {group}/{number}, Kind={kind}")
        name, uid = str(reference.get("name") or ""), str(reference.get("uid") or "")
        found = self._find(call, kind, name)
        if uid and uid != found["metadata"]["uid"]:
            raise conflict(
                "",
                kind,
                name,
                f"the UID in the bound object reference ({uid}) does not match the UID in record. "
                "The object might have been deleted and then recreated",
            )
        bound = [BoundObject(kind.lower(), name, found["metadata"]["uid"])]
        return bound + self._node_of(found) if kind == "Pod" else bound

    def _find(self, call: Call, kind: str, name: str) -> Json:
        namespace = "" if kind == "Node" else call.namespace
        found = read(self._store, _BINDABLE[kind], namespace, name) if name else None
        if found is None:
            raise not_found("", _BINDABLE[kind], name)
        if kind == "Pod" and (found.get("spec") or {}).get("serviceAccountName") != call.name:
            raise BadRequest(
                f'cannot bind token for serviceaccount "{call.name}" to pod running with different serviceaccount name.'
            )
        return found

    def _node_of(self, pod: Json) -> list[BoundObject]:
        """A Pod's token tells on which node it runs."""
        name = (pod.get("spec") or {}).get("nodeName") or ""
        node = read(self._store, "nodes", "", name) if name else None
        return [BoundObject("node", name, node["metadata"]["uid"])] if node is not None else []


def _checked(call: Call) -> Json:
    body = call.body
    if not isinstance(body, dict) or not isinstance(body.get("spec") or {}, dict):
        raise BadRequest("the body must be one TokenRequest")
    kind, version = body.get("kind") or "TokenRequest", body.get("apiVersion") or API_VERSION
    if kind != "TokenRequest" or version != API_VERSION:
        raise BadRequest(f'{kind} in version "{version}" cannot be handled as a TokenRequest of {API_VERSION}')
    named = (body.get("metadata") or {}).get("name") or call.name
    if named != call.name:
        raise BadRequest(f"the name of the object ({named}) does not match the name on the URL ({call.name})")
    return body


def _seconds(value: object) -> int:
    if value is None:
        return DEFAULT_SECONDS
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadRequest("spec.expirationSeconds must be a whole number of seconds")
    why = ""
    if value < MIN_SECONDS:
        why = "may not specify a duration less than 10 minutes"
    elif value > MAX_SECONDS:
        why = "may not specify a duration larger than 2^32 seconds"
    if why:
        cause = Cause.invalid("spec.expirationSeconds", f"{value}: {why}")
        raise invalid("authentication.k8s.io", "TokenRequest", "", [cause])
    return value


def _audiences(value: object) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadRequest("spec.audiences must be a list of texts")
    return value
