"""A part of the plane as one record. `app/components.py` holds the list of all of them."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from homeport.api.meta import Resource
from homeport.capi.capi import Capi
from homeport.capi.cloud import CloudSupport
from homeport.capi.definition.inventory import UpstreamProvider
from homeport.capi.environment import Environment
from homeport.capi.platform import PlatformSupport
from homeport.capi.rule import Rule
from homeport.runtime.manager import Manager
from homeport.runtime.webhook.hook import Hooks
from homeport.runtime.workload.runner import Runners

Definition = Mapping[str, Any]


class Setup:
    """One manager that components install their controllers on, and what they share there."""

    def __init__(self, manager: Manager, environment: Environment, components: Sequence[Component]) -> None:
        self.manager = manager
        self.environment = environment
        self.components = tuple(components)
        self.runs: Callable[[str], bool] = lambda controller: True  # of the component that is being installed

    @cached_property
    def capi(self) -> Capi:
        return Capi.make(self.manager, proxy=self.environment.dial.proxy, rehearsal=self.environment.rehearsal)

    @property
    def clouds(self) -> tuple[CloudSupport, ...]:
        return tuple(each.cloud for each in self.components if each.cloud is not None)

    @property
    def platforms(self) -> dict[str, PlatformSupport]:
        """Providers that serve platforms, by their type."""
        return {each.platform.type: each.platform for each in self.components if each.platform is not None}


@dataclass(frozen=True, slots=True)
class LogDeployment:
    """A Deployment under which users look for logs: `kubectl logs -n NAMESPACE deploy/DEPLOYMENT`."""

    namespace: str
    deployment: str
    controllers: tuple[str, ...] = ()  # patterns of controller names; empty: all controllers of the component
    alias: bool = False  # it shows logs alone: on another Kubernetes another Deployment runs these controllers
    rules: tuple[Rule, ...] | None = None  # all that these controllers write; None: all that the component writes

    def shows(self, controller: str) -> bool:
        return not self.controllers or any(fnmatch.fnmatchcase(controller, each) for each in self.controllers)


@dataclass(frozen=True, slots=True)
class ChartFolder:
    """A small chart of Homeport that the simulated internet serves under the address of the real one.

    `package`: the importable folder that has a folder `name` with Chart.yaml, whose version is `version`.
    """

    repository: str  # https://HOST/PATH, or oci://HOST/PATH without the chart's name
    name: str
    version: str
    package: str


def _no_definitions() -> Iterable[Definition]:
    return ()


def _no_hooks(hooks: Hooks, environment: Environment) -> None:
    del hooks, environment


def _no_objects() -> Iterable[tuple[Resource, Definition]]:
    return ()


def _no_runners(runners: Runners, environment: Environment) -> None:
    del runners, environment


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
    # What its controllers do through the API, besides following what they have informers for.
    rules: tuple[Rule, ...] = ()
    unwritten: frozenset[str] = frozenset()  # plurals of defined kinds that its controllers read at most
    namespaces: tuple[str, ...] = ()  # that exist from the start, besides those of the places
    # Objects that exist from the start: made if they are missing, and left alone afterwards.
    objects: Callable[[], Iterable[tuple[Resource, Definition]]] = _no_objects
    cloud: CloudSupport | None = None
    platform: PlatformSupport | None = None  # of a provider: how platforms use it
    # Adds what runs Pods of the embedded server; called once, before the first Pod starts.
    runners: Callable[[Runners, Environment], object] = _no_runners
    charts: tuple[ChartFolder, ...] = ()  # that simulated hosts of the internet serve
