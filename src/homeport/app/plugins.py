"""The controllers that `homeport up` runs, as a plain list. Each part of the platform appends what installs it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable

from homeport.runtime.manager import Manager

# Adds controllers and jobs to a manager. Called anew for each manager, so it keeps nothing.
Install = Callable[[Manager], object]

CONTROLLERS: list[Install] = []


class PluginError(ValueError):
    """A plugin that can't be loaded; the text names it and says why."""


def load(name: str) -> Install:
    """`MODULE:FUNCTION`, importable from here."""
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
    made: Install = install
    return made


def chosen(plugins: Iterable[str]) -> list[Install]:
    """Everything registered, and the named ones besides."""
    return [*CONTROLLERS, *(load(name) for name in plugins)]


def install(manager: Manager, installs: Iterable[Install]) -> Manager:
    for each in installs:
        each(manager)
    return manager
