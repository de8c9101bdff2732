"""What `homeport up` is made of, as plain lists. Each part of the platform appends what installs it."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from homeport.app.environment import Environment
from homeport.capi.inventory import Listed
from homeport.runtime.manager import Manager
from homeport.runtime.webhook.hook import Hooks

# Adds controllers and jobs to a manager. Called anew for each manager, so it keeps nothing.
Install = Callable[[Manager, Environment], object]
# Registers defaults, validation and conversion of kinds. Called once, before the first request.
Register = Callable[[Hooks, Environment], object]
# CustomResourceDefinitions, read when they are needed.
Definitions = Callable[[], Iterable[Mapping[str, Any]]]

# What clusterctl is told to be installed.
Providers = Callable[[], Iterable[Listed]]

CONTROLLERS: list[Install] = []
HOOKS: list[Register] = []
DEFINITIONS: list[Definitions] = []


class PluginError(ValueError):
    """A plugin that can't be loaded; the text names it and says why."""


@dataclass(frozen=True, slots=True)
class Platform:
    """Everything that one plane runs."""

    controllers: tuple[Install, ...] = ()
    hooks: tuple[Register, ...] = ()
    definitions: tuple[Definitions, ...] = ()
    defined: tuple[Install, ...] = ()  # controllers that can do nothing before all definitions are installed
    providers: tuple[Providers, ...] = ()

    def manage(self, manager: Manager, environment: Environment) -> Manager:
        for install in (*self.defined, *self.controllers):
            install(manager, environment)
        return manager

    def undefined(self) -> Platform:
        """What runs on a cluster that lacks the definitions."""
        return replace(self, defined=())

    def register(self, environment: Environment) -> Hooks:
        hooks = Hooks()
        for register in self.hooks:
            register(hooks, environment)
        return hooks

    def define(self) -> list[Mapping[str, Any]]:
        return [body for definitions in self.definitions for body in definitions()]

    def listed(self) -> list[Listed]:
        return [each for providers in self.providers for each in providers()]


def load(name: str) -> Install:
    """`MODULE:FUNCTION`, importable from here. The function gets the manager and, if it takes two, the environment."""
    module, colon, function = name.partition(":")
    if not colon or not module or not function:
        raise PluginError(f"--plugin {name!r}: write MODULE:FUNCTION, such as acme.controllers:install")
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise PluginError(f"--plugin {name!r}: module {module} can't be imported: {error}") from error
    install = getattr(found, function, None)
    if not callable(install):
        raise PluginError(f"--plugin {name!r}: module {module} has no function {function}")
    made: Install = install if _takes_both(install) else lambda manager, _: install(manager)
    return made


def _takes_both(function: Callable[..., object]) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True


def chosen(plugins: Iterable[str]) -> Platform:
    """Everything registered, and the named ones besides."""
    from homeport.app import clusterapi  # late: parts of it run platforms of their own

    return Platform(
        (*CONTROLLERS, *(load(name) for name in plugins)),
        (clusterapi.register, *HOOKS),
        (clusterapi.definitions, *DEFINITIONS),
        (clusterapi.install,),
        (clusterapi.providers,),
    )
