"""Questions about access that are asked by posting an object: token and access reviews. Nothing of them is stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from homeport.apiserver.auth.authn import Authenticator
from homeport.apiserver.auth.decision import Attributes
from homeport.apiserver.auth.rbac.rbac import Rbac
from homeport.apiserver.auth.source import Json
from homeport.apiserver.auth.token.jwt import TokenInvalid
from homeport.apiserver.registry import Call, Registry
from homeport.apiserver.request import User
from homeport.client.errors import BadRequest, Cause, invalid
from homeport.machinery.apply import managed

AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
_ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"

Answer = Callable[[Call, Json], Awaitable[Json]]


class Reviews:
    def __init__(self, authenticator: Authenticator, rbac: Rbac, now: Callable[[], str]) -> None:
        self._authenticator = authenticator
        self._rbac = rbac
        self._now = now

    def install(self, registry: Registry) -> None:
        table: dict[tuple[str, str], Answer] = {
            (AUTHENTICATION, "tokenreviews"): self.token,
            (AUTHENTICATION, "selfsubjectreviews"): self.self_subject,
            (AUTHORIZATION, "subjectaccessreviews"): self.access,
            (AUTHORIZATION, "localsubjectaccessreviews"): self.local_access,
            (AUTHORIZATION, "selfsubjectaccessreviews"): self.self_access,
            (AUTHORIZATION, "selfsubjectrulesreviews"): self.self_rules,
        }
        for (group, plural), answer in table.items():
            registry.connect(group, plural, "", self._connector(answer), "POST")

    def _connector(self, answer: Answer) -> Callable[[Call], Awaitable[Json]]:
        async def connect(call: Call) -> Json:
            return await answer(call, checked_body(call))

        return connect

    # -- authentication ----------------------------------------------------------------------------------------

    async def token(self, call: Call, body: Json) -> Json:
        spec = body.get("spec") or {}
        token = spec.get("token") or ""
        if not token:
            raise BadRequest("token is required for TokenReview in authentication")
        try:
            verified = self._authenticator.verify(token, spec.get("audiences") or ())
        except TokenInvalid as refused:
            why = f"[invalid bearer token, {refused}]" if refused.known else "invalid bearer token"
            return self._answer(call, body, {"user": {}, "error": why})
        status = {
            "authenticated": True,
            "user": verified.user.info(),
            "audiences": list(verified.audiences),
        }
        return self._answer(call, body, status)

    async def self_subject(self, call: Call, body: Json) -> Json:
        return {
            "kind": call.served.kind,
            "apiVersion": call.version.resource.api_version,
            "metadata": {"creationTimestamp": self._now()},
            "status": {"userInfo": call.ctx.user.info()},
        }

    # -- authorization -----------------------------------------------------------------------------------------

    async def access(self, call: Call, body: Json) -> Json:
        spec = body.get("spec") or {}
        _refuse(_access_causes(spec, other=True))
        return self._decided(call, body, _user(spec), spec)

    async def local_access(self, call: Call, body: Json) -> Json:
        spec = body.get("spec") or {}
        causes = _access_causes(spec, other=True)
        asked = (spec.get("resourceAttributes") or {}).get("namespace") or ""
        if spec.get("resourceAttributes") is not None and asked != call.namespace:
            field = "spec.resourceAttributes.namespace"
            causes.append(Cause.invalid(field, f'"{asked}": must match metadata.namespace'))
        if spec.get("nonResourceAttributes") is not None:
            shown = _shown_path(spec["nonResourceAttributes"])
            message = f"Invalid value: {shown}: disallowed on this kind of request"
            causes.append(Cause("FieldValueInvalid", message, "spec.nonResourceAttributes"))
        _refuse(causes)
        return self._decided(call, body, _user(spec), spec)

    async def self_access(self, call: Call, body: Json) -> Json:
        spec = body.get("spec") or {}
        _refuse(_access_causes(spec, other=False))
        return self._decided(call, body, call.ctx.user, spec)

    async def self_rules(self, call: Call, body: Json) -> Json:
        namespace = (body.get("spec") or {}).get("namespace") or ""
        if not namespace:
            raise BadRequest("no namespace on request")
        rules, errors = self._rbac.rules_for(call.ctx.user, namespace)
        status: Json = {
            "resourceRules": [rule._replace(urls=()).as_dict() for rule in rules if rule.resources],
            "nonResourceRules": [
                {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.urls)} for rule in rules if rule.urls
            ],
            "incomplete": False,
        }
        if errors:
            status["evaluationError"] = ", ".join(errors)
        return {
            "kind": call.served.kind,
            "apiVersion": call.version.resource.api_version,
            "metadata": {},
            "spec": {},
            "status": status,
        }

    def _decided(self, call: Call, body: Json, user: User, spec: Json) -> Json:
        decision = self._rbac.authorize(_question(user, spec))
        status: Json = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        return self._answer(call, body, status)

    def _answer(self, call: Call, body: Json, status: Json) -> Json:
        resource = call.version.resource
        meta = dict(body.get("metadata") or {})
        meta.pop("managedFields", None)
        if call.namespace:
            meta["namespace"] = call.namespace
        review = {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": meta,
            "spec": body.get("spec") or {},
        }
        managed.update(
            None,
            review,
            schema=call.version.schema,
            api_version=resource.api_version,
            manager=call.ctx.manager,
            time=self._now(),
        )
        review["status"] = status
        return review


def checked_body(call: Call) -> Json:
    """The body, once it is an object of the right kind and shape."""
    body = call.body
    resource = call.version.resource
    if not isinstance(body, dict):
        raise BadRequest(f"the body must be one {resource.kind}")
    kind = body.get("kind") or resource.kind
    if kind != resource.kind or (body.get("apiVersion") or resource.api_version) != resource.api_version:
        raise BadRequest(
            f'{kind} in version "{body.get("apiVersion")}" cannot be handled as a {resource.kind}: '
            f"expected {resource.kind} of {resource.api_version}"
        )
    call.version.checker.prune(body)
    return body


def _access_causes(spec: Json, *, other: bool) -> list[Cause]:
    """`other`: the review is about somebody else, who must be named."""
    causes: list[Cause] = []
    path = spec.get("nonResourceAttributes")
    if (path is None) == (spec.get("resourceAttributes") is None):
        shown = "null" if path is None else _shown_path(path)
        causes.append(Cause.invalid("spec", f"{shown}: {_ONE_OF}"))
    if other and not spec.get("user") and not spec.get("groups"):
        message = 'Invalid value: "": at least one of user or group must be specified'
        causes.append(Cause("FieldValueInvalid", message, "spec.user"))
    return causes


def _shown_path(path: Mapping[str, Any]) -> str:
    return f'{{"Path":"{path.get("path", "")}","Verb":"{path.get("verb", "")}"}}'


def _refuse(causes: list[Cause]) -> None:
    if causes:
        raise invalid(AUTHORIZATION, "", "", causes)


def _user(spec: Json) -> User:
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user") or "", tuple(spec.get("groups") or ()), spec.get("uid") or "", extra)


def _question(user: User, spec: Json) -> Attributes:
    path = spec.get("nonResourceAttributes")
    if path is not None:
        # A path that is not given still is one: without it the question would be about a resource.
        return Attributes(user, path.get("verb") or "", path=path.get("path") or "/")
    wanted = cast(Json, spec["resourceAttributes"])
    fields = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    return Attributes(user, *(wanted.get(field) or "" for field in fields))
