"""A kind and reconcilers of it."""

from __future__ import annotations

from typing import Any

import msgspec

from homeport.api.meta import Model, Object, Resource, resource
from homeport.client.protocol import Key, Query
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Reporting, Scope, run_phases
from homeport.runtime.testing import definition

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")


class WidgetSpec(Model):
    size: int = 0


class WidgetStatus(Model):
    size: int = 0
    conditions: list[dict[str, Any]] = []


@resource("runtime.example.com", "v1", "Widget", "widgets")
class Widget(Object):
    spec: WidgetSpec = msgspec.field(default_factory=WidgetSpec)
    status: WidgetStatus = msgspec.field(default_factory=WidgetStatus)


WIDGET = Widget.__resource__
WIDGETS = definition(WIDGET)


def widget(name: str, namespace: str, size: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"size": size}}


def right_size(obj: Widget) -> bool:
    return bool(obj.status.size == obj.spec.size)


class Sizes(Reporting[Scope[Widget]]):
    """Brings status.size to spec.size."""

    def __init__(self, manager: Manager, namespace: str) -> None:
        super().__init__(manager.client, manager.recorder, manager="sizes", clock=manager.clock)
        self.informer = manager.informers.get(Widget, Query(namespace=namespace))

    async def reconcile(self, key: Key) -> Wait | None:
        found = self.informer.cache.get(key)
        if found is None:
            return None
        scope = Scope(found)
        return await self.reported(scope, run_phases(scope, [self._copy]))

    async def _copy(self, scope: Scope[Widget]) -> Wait | None:
        scope.object.status.size = scope.object.spec.size
        return None


def sizes(manager: Manager, namespace: str) -> Sizes:
    made = Sizes(manager, namespace)
    query = Query(namespace=namespace)
    manager.add(Controller("sizes", Widget, made, query=query, clock=manager.clock))
    return made


class OneChild:
    """Gives every widget one ConfigMap with a name that the server chooses: from an old cache it would make more."""

    def __init__(self, manager: Manager, namespace: str) -> None:
        self._client = manager.client
        self.informer = manager.informers.get(CONFIG_MAP, Query(namespace=namespace, labels="parent"))
        self.informer.cache.add_index("parent", lambda obj: [obj.metadata["labels"]["parent"]])

    async def reconcile(self, key: Key) -> Wait | None:
        if self.informer.cache.by("parent", key.name):
            return None
        meta = {"generateName": f"{key.name}-", "namespace": key.namespace, "labels": {"parent": key.name}}
        await self._client.create({"metadata": meta}, kind=CONFIG_MAP)
        return Wait("Made", "look again at once", after=0.01)
