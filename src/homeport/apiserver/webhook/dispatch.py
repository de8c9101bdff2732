"""Asks the webhooks that an object concerns, and does what they say.

    configuration in the store > Webhook > does it concern the kind? (once) > the object? (each time) > ask > obey

Mutating webhooks are asked one after the other, in the order of their configurations' names; validating ones at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import orjson
import structlog

from homeport.apiserver.auth.decision import refusal
from homeport.apiserver.auth.source import follow
from homeport.apiserver.resource import Json, ServedKind
from homeport.apiserver.verb.admission import DELETE, Admission, Attributes
from homeport.apiserver.webhook.call import AnswerInvalid, Caller, CallFailed
from homeport.apiserver.webhook.hook import (
    MUTATING,
    VALIDATING,
    CompileCondition,
    ConditionError,
    Webhook,
    parse_configuration,
)
from homeport.apiserver.webhook.review import Answer, denial, parse_answer, render_review, request_of
from homeport.client.errors import ApiError, BadRequest, Cause, Internal, not_found
from homeport.machinery.patch import PatchError, json_patch
from homeport.store import Store

log = structlog.get_logger(__name__)

ANSWER_LIMIT = 16 * 1024 * 1024

# (objects, kind, version) > the objects in that version
Convert = Callable[[list[Json], ServedKind, str], Awaitable[list[Json]]]


class WebhookAdmission:
    """The plugin. `add` it to the Admission as the last one, then `follow` the store."""

    def __init__(
        self, store: Store, caller: Caller, convert: Convert, compile_condition: CompileCondition, admission: Admission
    ) -> None:
        self._store = store
        self._caller = caller
        self._convert = convert
        self._compile = compile_condition
        self._admission = admission
        self._configured: dict[tuple[bool, str], tuple[Webhook, ...]] = {}

    def follow(self) -> Callable[[], None]:
        stops = [self._follow(MUTATING, mutating=True), self._follow(VALIDATING, mutating=False)]

        def stop() -> None:
            for each in stops:
                each()

        return stop

    def _follow(self, bucket: str, *, mutating: bool) -> Callable[[], None]:
        def put(name: str, obj: Json) -> None:
            self._configured[mutating, name] = parse_configuration(
                obj, mutating=mutating, compile_condition=self._compile
            )
            self._admission.forget()

        def drop(name: str) -> None:
            self._configured.pop((mutating, name), None)
            self._admission.forget()

        return follow(self._store, bucket, put, drop)

    def mutates(self, served: ServedKind, operation: str, subresource: str) -> bool:
        return any(h.concerns(served, operation, subresource) for h in self._webhooks(mutating=True))

    def validates(self, served: ServedKind, operation: str, subresource: str) -> bool:
        return any(h.concerns(served, operation, subresource) for h in self._webhooks(mutating=False))

    def _webhooks(self, *, mutating: bool) -> list[Webhook]:
        names = sorted(name for kind, name in self._configured if kind is mutating)
        return [hook for name in names for hook in self._configured[mutating, name]]

    # -- mutating ----------------------------------------------------------------------------------------------

    async def mutate(self, attributes: Attributes) -> Json | None:
        a = attributes
        changed_after: dict[int, bool] = {}  # by place: whether somebody changed the object after this webhook saw it
        webhooks = self._webhooks(mutating=True)
        for place, hook in enumerate(webhooks):
            if await self._ask_to_change(hook, a):
                changed_after = dict.fromkeys(changed_after, True)
            changed_after[place] = False
        for place, hook in enumerate(webhooks):
            # Once more, and only once: two that undo each other would never come to an end.
            if hook.reinvoke and changed_after[place]:
                await self._ask_to_change(hook, a)
        return a.object

    async def _ask_to_change(self, hook: Webhook, a: Attributes) -> bool:
        """Whether the webhook changed the object."""
        answer, shown, version = await self._ask(hook, a)
        if answer is None or not answer.patch or a.operation == DELETE or shown is None:
            return False
        try:
            patched = json_patch(shown, answer.patch)
        except PatchError as broken:  # no failurePolicy covers this: the webhook answered, but about another object
            raise _internal(str(broken)) from broken
        if not isinstance(patched, dict) or patched == shown:
            return False
        a.object = await self._back(patched, a, version)
        return True

    async def _back(self, obj: Json, a: Attributes, version: str) -> Json:
        own = a.version.resource.version
        return obj if version == own else (await self._convert([obj], a.served, own))[0]

    # -- validating --------------------------------------------------------------------------------------------

    async def validate(self, attributes: Attributes) -> None:
        webhooks = self._webhooks(mutating=False)
        results = await asyncio.gather(*(self._ask(hook, attributes) for hook in webhooks), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    # -- both --------------------------------------------------------------------------------------------------

    async def _ask(self, hook: Webhook, a: Attributes) -> tuple[Answer | None, Json | None, str]:
        """The answer (None: the webhook is not concerned, or failed and may), and the object as it was shown."""
        own = a.version.resource.version
        version = hook.version_for(a.served, own, a.operation, a.subresource)
        if version is None or not hook.concerns(a.served, a.operation, a.subresource):
            return None, None, own
        if not self._selected(hook, a):
            return None, None, own
        obj, old = await self._shown(a, version)
        request = request_of(a, version, obj, old)
        if not _conditions_hold(hook, request, obj, old, a):
            return None, None, own
        if a.dry_run and not hook.quiet:
            raise BadRequest(f'admission webhook "{hook.name}" does not support dry run')
        try:
            body = render_review(request, hook.review_version)
            raw = await self._caller.call(hook.client, body, hook.timeout, ANSWER_LIMIT)
            answer = parse_answer(raw, request, hook.review_version, mutating=hook.mutating)
        except CallFailed as failed:
            if hook.fail:
                what = (
                    "received invalid webhook response"
                    if isinstance(failed, AnswerInvalid)
                    else "failed to call webhook"
                )
                raise _internal(f'failed calling webhook "{hook.name}": {what}: {failed}') from failed
            log.warning(
                "webhook failed and is ignored because of its failurePolicy", webhook=hook.name, why=str(failed)
            )
            return None, None, own
        for text in answer.warnings:
            a.ctx.warn(text)
        a.annotations.update({f"{hook.name}/{key}": value for key, value in answer.annotations.items()})
        if not answer.allowed:
            raise denial(hook.name, answer.status)
        return answer, obj, version

    async def _shown(self, a: Attributes, version: str) -> tuple[Json | None, Json | None]:
        if version == a.version.resource.version:
            return a.object, a.old
        present = [obj for obj in (a.object, a.old) if obj is not None]
        # Conversion may change what it gets, and these go on to be stored.
        copies = [orjson.loads(orjson.dumps(obj)) for obj in present]
        converted = iter(await self._convert(copies, a.served, version) if copies else [])
        return (
            next(converted) if a.object is not None else None,
            next(converted) if a.old is not None else None,
        )

    def _selected(self, hook: Webhook, a: Attributes) -> bool:
        if not hook.objects.empty:
            if not any(obj is not None and hook.objects.matches(_labels(obj)) for obj in (a.object, a.old)):
                return False
        is_namespace = (a.served.group, a.served.plural) == ("", "namespaces")
        if hook.namespaces.empty or not (a.namespace or is_namespace):
            return True  # what is in no namespace can't be left out by one
        return hook.namespaces.matches(_labels(a.object or a.old or {}) if is_namespace else self._namespace_labels(a))

    def _namespace_labels(self, a: Attributes) -> Mapping[str, str]:
        record = self._store.head("namespaces", a.namespace)
        if record is None:
            raise not_found("", "namespaces", a.namespace)
        return _labels(orjson.loads(record.value))


def _labels(obj: Json) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def _conditions_hold(hook: Webhook, request: Json, obj: Json | None, old: Json | None, a: Attributes) -> bool:
    """False as soon as one says so, whatever others could not evaluate."""
    if not hook.conditions:
        return True
    variables: dict[str, Any] = {"request": request, "object": obj, "oldObject": old}
    errors: list[str] = []
    for expression, condition in hook.conditions:
        try:
            if not condition(variables):
                return False
        except ConditionError as broken:
            errors.append(f"expression '{expression}' resulted in error: {broken}")
    if errors and hook.fail:
        raise _condition_refusal(a, errors)
    return not errors


def _condition_refusal(a: Attributes, errors: Sequence[str]) -> ApiError:
    text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    return refusal(a.served.group, a.served.plural, a.name, text)


def _internal(why: str) -> Internal:
    return Internal(f"Internal error occurred: {why}", causes=[Cause("", why)])
