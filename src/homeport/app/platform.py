"""The components that one plane runs, chosen from the list, plus plugins."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import resources
from typing import Any

import orjson
import structlog

from homeport.api.meta import Resource
from homeport.app.kubernetes.layout import COMBINED, Placement
from homeport.capi.component import Component, Definition, LogDeployment, Setup
from homeport.capi.definition.inventory import UpstreamProvider, is_inventory
from homeport.capi.environment import Environment, PrepareError
from homeport.client.protocol import Client
from homeport.client.wire.rest import RestClient
from homeport.machinery import crd
from homeport.runtime.manager import Manager
from homeport.runtime.webhook.hook import Hooks
from homeport.runtime.workload.runner import Runners

log = structlog.get_logger(__name__)


class PluginError(ValueError):
    """A plugin or component that can't be used; the text names it and says why."""


@dataclass(frozen=True, slots=True)
class Platform:
    """Everything that one plane runs."""

    components: tuple[Component, ...] = ()
    placement: Placement = COMBINED  # which of their controllers run in this process
    absent: frozenset[str] = frozenset()  # kinds of components that were left out: the cluster may not have them

    def manage(self, manager: Manager, environment: Environment) -> Manager:
        self.install(manager, environment)
        return manager

    def install(self, manager: Manager, environment: Environment) -> dict[LogDeployment, list[str]]:
        """Adds the controllers of the placement. Returns the names of those that each Deployment shows the log of."""
        setup = Setup(manager, replace(environment, prepare=self.prepare), self.components)
        shown: dict[LogDeployment, list[str]] = {}
        for component in self.components:
            if not self.placement.has(component):
                continue
            before = len(manager.controllers)
            setup.runs = partial(self.placement.runs, component)
            component.install(setup)
            added = [each.name for each in manager.controllers[before:] if self.placement.runs(component, each.name)]
            manager.controllers[before:] = [each for each in manager.controllers[before:] if each.name in added]
            for place in component.places:
                shown.setdefault(place, []).extend(name for name in added if place.shows(name))
        for informer in manager.informers:
            informer.optional = informer.resource.qualified in self.absent
        return shown

    async def prepare(self, client: Client) -> None:
        """Brings definitions and namespaces into another cluster: what `homeport install --no-controllers` does."""
        from homeport.app.kubernetes.install import InstallError, prepare  # late: it needs this module

        if not isinstance(client, RestClient):
            raise PrepareError("the cluster is not connected over HTTP")
        try:
            await prepare(client, self, lambda text: log.info(text))
        except InstallError as error:
            raise PrepareError(str(error)) from error

    def register(self, environment: Environment) -> Hooks:
        hooks = Hooks()
        for component in self.components:
            component.register(hooks, environment)
        return hooks

    def add_runners(self, runners: Runners, environment: Environment) -> None:
        for component in self.components:
            component.runners(runners, environment)

    def definitions(self) -> list[Definition]:
        return [body for component in self.components for body in definitions_of(component)]

    def inventory(self) -> list[UpstreamProvider]:
        return [each for component in self.components for each in component.inventory]

    def namespaces(self) -> list[str]:
        """Where users expect the components, and put objects for them."""
        found = [place.namespace for component in self.components for place in component.places]
        return [*found, *(name for component in self.components for name in component.namespaces)]

    def objects(self) -> list[tuple[Resource, Definition]]:
        return [each for component in self.components for each in component.objects()]

    def without(self, names: Iterable[str]) -> Platform:
        """The same without these components. Raises PluginError for unknown ones and ones that others require."""
        left_out = set(names)
        known = [component.name for component in self.components]
        for name in sorted(left_out - set(known)):
            raise PluginError(f"--without {name}: no such component; components are {', '.join(known)}")
        kept = tuple(component for component in self.components if component.name not in left_out)
        gone = [component for component in self.components if component.name in left_out]
        for component in kept:
            for name in component.requires:
                if name in left_out:
                    raise PluginError(
                        f"--without {name}: component {component.name} requires it; "
                        f"add --without {component.name} to leave out both"
                    )
        return replace(self, components=kept, absent=self.absent | _kinds(gone))

    def served(self, absent: Sequence[str]) -> Platform:
        """What can run where these definitions are missing: components that need one of them are left out."""
        missing = set(absent)
        kept: list[Component] = []
        for component in self.components:
            needed = {body["metadata"]["name"] for body in definitions_of(component) if not is_inventory(body)}
            if not needed & missing and set(component.requires) <= {each.name for each in kept}:
                kept.append(component)
        gone = [component for component in self.components if component not in kept]
        return replace(self, components=tuple(kept), absent=self.absent | _kinds(gone))


@cache
def _packed() -> Mapping[str, Sequence[Definition]]:
    """Generated from the types by `make gen`: reading them takes a tenth of the time of generating them. Tests check
    every schema, so that no start of a plane has to."""
    packed = resources.files("homeport.app").joinpath("definitions.json").read_bytes()
    found: Mapping[str, Sequence[Definition]] = orjson.loads(packed)
    for definitions in found.values():
        for each in definitions:
            crd.trust(each)
    return found


def _kinds(components: Iterable[Component]) -> frozenset[str]:
    return frozenset(str(each["metadata"]["name"]) for component in components for each in definitions_of(component))


def definitions_of(component: Component) -> Sequence[Definition]:
    found = _packed().get(component.name)
    return found if found is not None else tuple(component.definitions())


def load(name: str) -> Component:
    """`MODULE:NAME`: a Component, or a function that adds controllers to a manager (and takes the environment, too, if
    it has two parameters). Raises PluginError."""
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise PluginError(f"--plugin {name!r}: expected MODULE:NAME, for example acme.controllers:COMPONENT")
    try:
        imported = importlib.import_module(module)
    except ImportError as error:
        raise PluginError(f"--plugin {name!r}: module {module} can't be imported: {error}") from error
    found = getattr(imported, attribute, None)
    if isinstance(found, Component):
        return found
    if not callable(found):
        raise PluginError(f"--plugin {name!r}: module {module} has no Component or function {attribute}")
    if inspect.iscoroutinefunction(found) or not (_takes(found, 1) or _takes(found, 2)):
        shown = f"{'async ' if inspect.iscoroutinefunction(found) else ''}{attribute}{_signature(found)}"
        text = "expected a Component, or a function (not async) with the parameters manager, or manager and environment"
        raise PluginError(f"--plugin {name!r}: {shown}: {text}")
    return Component(name=name, install=_installer(found))


def _installer(function: Callable[..., object]) -> Callable[[Setup], object]:
    if _takes(function, 2):
        return lambda setup: function(setup.manager, setup.environment)
    return lambda setup: function(setup.manager)


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Whether it can be called with so many arguments. Of a function that does not show its parameters, one is."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        return count == 1
    return True


def _signature(function: Callable[..., Any]) -> str:
    try:
        return str(inspect.signature(function))
    except ValueError:
        return "(...)"


def chosen(plugins: Iterable[str] = (), without: Iterable[str] = ()) -> Platform:
    """All components of the list except `without`, then the plugins. Raises PluginError."""
    from homeport.app.components import COMPONENTS  # late: a component may run a platform of its own

    loaded = [load(name) for name in plugins]
    names = [component.name for component in COMPONENTS]
    for component in loaded:
        if component.name in names:
            raise PluginError(f"--plugin: there is already a component named {component.name!r}")
        names.append(component.name)
    return Platform((*COMPONENTS, *loaded)).without(without)
