"""Has the API server check the rules: the embedded one, or another Kubernetes."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from homeport.api.butler.v1alpha1 import GROUP
from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.auth.decision import Attributes as Question
from homeport.apiserver.auth.decision import refusal
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.verb.admission import ALL, Attributes
from homeport.capi.component import Setup
from homeport.client.errors import AlreadyExists, ApiError, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.platforms.butler.addon.guard import BINDING, POLICY, differs
from homeport.platforms.butler.author.policy import Json, render_policies
from homeport.platforms.butler.author.rule import Change, rights
from homeport.platforms.butler.name import FIELD_MANAGER

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 60.0
_WITH = "butler-tenantcluster"  # the policies are kept by the Deployment that has this controller
_KINDS: dict[str, Resource] = {each.kind: each for each in (POLICY, BINDING)}


def join(server: EmbeddedServer) -> None:
    """Call once, before the first request."""

    def check(a: Attributes) -> None:
        if a.object is None:
            return
        change = Change(a.served.plural, a.object, a.old)
        for each in rights(change):
            question = Question(
                a.ctx.user,
                each.verb,
                each.group,
                "*",
                each.resource,
                each.subresource,
                each.namespace,
                each.name,
            )
            if not server.rbac.authorize(question).allowed:
                raise refusal(GROUP, a.served.plural, a.name, each.why)

    server.admission.on(GROUP, ALL, check)


def install(setup: Setup) -> None:
    if not setup.environment.embedded and setup.runs(_WITH):
        setup.manager.job(Policies(setup.manager.client).run)


class Policies:
    """Keeps the policies of another Kubernetes as they should be."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def run(self) -> None:
        said = ""
        while True:
            try:
                await self.hold()
                said = ""
            except ApiError as error:
                again, said = str(error) == said, str(error)
                _LOG.log(
                    logging.DEBUG if again else logging.WARNING,
                    "ValidatingAdmissionPolicies can't be written, so nothing checks who removes finalizers, sets SSH "
                    "keys and charts, and names Secrets: %s. Allow the controllers to write "
                    "validatingadmissionpolicies and validatingadmissionpolicybindings",
                    error,
                )
            await asyncio.sleep(_LOOK_SECONDS)

    async def hold(self) -> None:
        for each in render_policies():
            await self._hold(_KINDS[each["kind"]], each)

    async def _hold(self, kind: Resource, body: Json) -> None:
        key, write = Key("", body["metadata"]["name"]), Write(field_manager=FIELD_MANAGER)
        try:
            found = await self._client.get(kind, key)
        except NotFound:
            with contextlib.suppress(AlreadyExists):
                await self._client.create(Unstructured(body), write, kind=kind)
            return
        if differs(found, body):  # an apply would leave what somebody added to a list
            await self._client.patch(kind, key, MergePatch({"spec": body["spec"]}), write)
