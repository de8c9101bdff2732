"""Which plane `homeport status` shows, how to ask it, and what is known about it from outside."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click
import msgspec

from homeport.app.hint import on_data
from homeport.app.plane.instance import STATUS_PATH, Instance, read_instance
from homeport.app.settings import Settings
from homeport.cli.advice import kubeconfig_files
from homeport.cli.where import Where

if TYPE_CHECKING:
    from homeport.app.report.description import Description
    from homeport.client.config import Config


@dataclass(frozen=True, slots=True)
class Target:
    """A plane: `ask` reads how it is, `head` is what the overview begins with."""

    ask: Callable[[], Description]
    head: Callable[[Description], Iterator[str]]
    command: Callable[[str], str]  # writes a homeport command with the options that name this plane
    facts: dict[str, Any] = field(default_factory=dict)


class Down(Exception):
    """No plane runs on this data directory."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(f"no plane is running on {settings.data}")
        self.settings = settings


def choose(where: Where) -> Target:
    """--kubeconfig, --data, $KUBECONFIG, the default directory: the first that is set. Raises Down.

    A plane on this machine is shown in full also if a kubeconfig names it. If $KUBECONFIG names a cluster without
    Homeport, the plane that runs on the default directory is shown, and a note says so.
    """
    from homeport.client.config import ConfigError
    from homeport.client.errors import ApiError

    settings = Settings.make(where.data)
    instance = read_instance(settings.data)
    if where.kubeconfig is None and not where.from_environment:
        return _local(settings, instance, "--data" if where.data_named else "default")
    source = "--kubeconfig" if where.kubeconfig is not None else "$KUBECONFIG"
    try:
        config = where.load()
        files = kubeconfig_files(where.kubeconfig)  # beside the one that a plane writes is the rest of its data
        for directory in (settings.data, *(file.absolute().parent for file in files)):
            here = read_instance(directory)
            if here is not None and config.server.rstrip("/") == here.url.rstrip("/"):
                return _local(Settings.make(directory), here, source)
        return _remote(where, config, source)
    except (ApiError, ConfigError, Useless) as error:
        if source == "$KUBECONFIG" and instance is not None:
            return _local(settings, instance, "default", note=f"$KUBECONFIG is not used: {error}")
        raise click.ClickException(f"{error} ({source}){where.cure(error)}") from error


class Useless(Exception):
    """The cluster of this kubeconfig has no Homeport."""


# -- a plane on this machine -----------------------------------------------------------------------------------------


def _local(settings: Settings, instance: Instance | None, source: str, note: str = "") -> Target:
    if instance is None:
        raise Down(settings)
    running: Instance = instance

    def head(found: Description) -> Iterator[str]:
        if note:
            yield note
        yield from local_head(settings, running, found)

    facts = {**place(settings), "source": source, "running": True, **msgspec.to_builtins(running)}
    return Target(
        lambda: ask_plane(settings, running), head, lambda verb: on_data(verb, settings.data), facts | _noted(note)
    )


def _noted(note: str) -> dict[str, str]:
    return {"note": note} if note else {}


def place(settings: Settings) -> dict[str, Any]:
    return {"data": str(settings.data), "kubeconfig": str(settings.kubeconfig), "log": str(settings.log)}


def ask_plane(settings: Settings, instance: Instance) -> Description:
    from homeport.app.remote import ask
    from homeport.app.report.description import Description
    from homeport.client.config import ConfigError
    from homeport.client.errors import ApiError

    try:
        return msgspec.convert(ask(settings.kubeconfig, STATUS_PATH), Description)
    except (ApiError, ConfigError) as error:
        what = f"the plane at {instance.url} (process {instance.pid}) does not answer"
        raise click.ClickException(f"{what}: {error}. See {settings.log}") from error


def local_head(settings: Settings, instance: Instance, found: Description) -> Iterator[str]:
    up = duration(time.time() - instance.started)
    yield f"Homeport {instance.version} runs at {instance.url} (up {up}, process {instance.pid})"
    yield f"kubeconfig  {settings.kubeconfig}"
    yield f"data        {settings.data}"
    if found.simulators:  # they share one network, and so the proxy to it
        yield f"proxy       {found.simulators[0].proxy}"
    if found.processes:
        yield "hosted      " + ", ".join(f"{count} {name}" for name, count in sorted(found.processes.items()))
    for each in found.simulators:
        yield f"simulator   {each.name} {each.url}, {each.running} of {each.machines} machines running"
        if each.kubeconfig:
            yield f"  kubeconfig {each.kubeconfig}"
        elif each.user:
            yield f"  login     user {each.user}, password {each.password}"
        else:
            yield f"  token     {each.password}"
        yield f"  authority {each.authority}"
        if each.admin:
            yield f"  admin     {each.admin} (curl -H @{each.admin_header})"


def duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


# -- a plane that a kubeconfig names ---------------------------------------------------------------------------------


def _remote(where: Where, config: Config, source: str) -> Target:
    file = str(where.kubeconfig) if where.kubeconfig is not None else os.environ["KUBECONFIG"]
    said = f"{file} ({source}{f', context {where.context}' if where.context else ''})"
    _read_remote(where)  # what is wrong is found out before anything is printed

    def head(found: Description) -> Iterator[str]:
        yield f"Homeport at {config.server}"
        yield f"kubeconfig  {said}"
        for part in found.parts if found.revision == 0 else ():
            yield f"deployment  {part.name}, {part.state}"

    facts = {"kubeconfig": file, "source": source, "running": True, "url": config.server}
    return Target(lambda: _read_remote(where), head, lambda verb: f"homeport {verb}{where.place()}", facts)


def _read_remote(where: Where) -> Description:
    """What the plane reports about itself; on a Kubernetes cluster, or without the right to ask, what objects show."""
    from homeport.app.report.description import Description
    from homeport.app.report.installation import NotInstalled, describe_installation
    from homeport.cli.where import reach
    from homeport.client.errors import Forbidden
    from homeport.client.http import HttpClient
    from homeport.runtime.clock import SystemClock

    async def work(client: HttpClient) -> Description:
        answer = await client.raw("POST", STATUS_PATH)
        if answer.status == 200:
            return msgspec.convert(answer.json(), Description)
        try:
            return await describe_installation(client, SystemClock().now(), where.namespace)
        except NotInstalled as error:
            raise Useless(f"{where.load().server}: {error}") from None
        except Forbidden:
            place = f"namespace {where.namespace!r}" if where.namespace else "all namespaces"
            text = (
                f"you may not list Clusters in {place}: ask an administrator for the right, or name a namespace with -n"
            )
            raise Useless(f"{where.load().server}: {text}") from None

    return reach(where, work)
