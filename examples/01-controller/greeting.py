"""A whole controller: every Greeting gets a ConfigMap with its text, and says in its status whether it has one."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from homeport.api.meta import Model, Object, Resource, resource
from homeport.client.protocol import Key, Write
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Reporting, Scope, run_phases

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")


class GreetingSpec(Model):
    text: str = ""


class GreetingStatus(Model):
    conditions: list[dict[str, Any]] = []


@resource("example.homeport.dev", "v1", "Greeting", "greetings")
class Greeting(Object):
    __resource__: ClassVar[Resource]

    spec: GreetingSpec = msgspec.field(default_factory=GreetingSpec)
    status: GreetingStatus = msgspec.field(default_factory=GreetingStatus)


class GreetingReconciler(Reporting[Scope[Greeting]]):
    def __init__(self, manager: Manager) -> None:
        super().__init__(manager.client, manager.recorder, manager="greeting", clock=manager.clock)
        self._greetings = manager.informers.get(Greeting).cache

    async def reconcile(self, key: Key) -> Wait | None:
        greeting = self._greetings.get(key)
        if greeting is None:
            return None  # gone; the garbage collector takes the ConfigMap along
        scope = Scope(greeting)
        return await self.reported(scope, run_phases(scope, [self._await_text, self._hold_config_map]))

    async def _await_text(self, scope: Scope[Greeting]) -> Wait | None:
        if not scope.object.spec.text:
            return Wait(
                "WaitingForText", "set spec.text to the text of the greeting"
            )  # a change of the object wakes us
        return None

    async def _hold_config_map(self, scope: Scope[Greeting]) -> Wait | None:
        greeting = scope.object
        owner = {
            "apiVersion": Greeting.__resource__.api_version,
            "kind": "Greeting",
            "name": greeting.metadata.name,
            "uid": greeting.metadata.uid,
            "controller": True,
        }
        await self.client.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": greeting.metadata.name,
                    "namespace": greeting.metadata.namespace,
                    "ownerReferences": [owner],
                },
                "data": {"text": greeting.spec.text},
            },
            Write(field_manager="greeting"),
            kind=CONFIG_MAP,
            force=True,
        )
        return None


def install(manager: Manager) -> None:
    manager.add(Controller("greeting", Greeting, GreetingReconciler(manager)).own(CONFIG_MAP))
