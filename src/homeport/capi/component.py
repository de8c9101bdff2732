"""A part of the plane as one record. `app/components.py` holds the list of all of them."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from homeport.capi.capi import Capi
from homeport.capi.cloud import CloudSupport
from homeport.capi.definition.inventory import UpstreamProvider
from homeport.capi.environment import Environment
from homeport.runtime.manager import Manager
from homeport.runtime.webhook.hook import Hooks

Definition = Mapping[str, Any]


class Setup:
    """One manager that components install their controllers on, and what they share there."""

    def __init__(self, manager: Manager, environment: Environment, components: Sequence[Component]) -> None:
        self.manager = manager
        self.environment = environment
        self.components = tuple(components)

    @cached_property
    def capi(self) -> Capi:
        return Capi.make(self.manager, proxy=self.environment.dial.proxy)

    @property
    def clouds(self) -> tuple[CloudSupport, ...]:
        return tuple(each.cloud for each in self.components if each.cloud is not None)


@dataclass(frozen=True, slots=True)
class LogDeployment:
    """A Deployment under which users look for logs: `kubectl logs -n NAMESPACE deploy/DEPLOYMENT`."""

    namespace: str
    deployment: str
    controllers: tuple[str, ...] = ()  # patterns of controller names; empty: all controllers of the component

    def shows(self, controller: str) -> bool:
        return not self.controllers or any(fnmatch.fnmatchcase(controller, each) for each in self.controllers)


def _no_definitions() -> Iterable[Definition]:
    return ()


def _no_hooks(hooks: Hooks, environment: Environment) -> None:
    del hooks, environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Everything that the plane needs to run one part of it.

    `install` is called for each new manager, so it keeps no state. `register` is called once, before the first request.
    """

    name: str
    install: Callable[[Setup], object]
    requires: tuple[str, ...] = ()  # names of components that must run, too
    definitions: Callable[[], Iterable[Definition]] = _no_definitions
    register: Callable[[Hooks, Environment], object] = _no_hooks
    inventory: tuple[UpstreamProvider, ...] = ()
    places: tuple[LogDeployment, ...] = ()
    cloud: CloudSupport | None = None
