"""What a user can do about an answer of the plane: near names, other namespaces, how to start the plane."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from homeport.client.errors import ApiError
    from homeport.client.protocol import Client


async def name_near(client: Client, error: ApiError, namespace: str) -> str:
    """The message of a NotFound, with the names that there are, or the namespace that has the object."""
    from homeport.client.errors import ApiError
    from homeport.client.protocol import Query
    from homeport.client.restmapper import RestMapper
    from homeport.infra.preflight.near import near

    details = error.status.get("details") or {}
    name, plural, group = (str(details.get(key) or "") for key in ("name", "kind", "group"))
    if not name:
        return str(error)
    try:
        kinds = await RestMapper(client).listed()
        kind = next((each for each in kinds if (each.group, each.plural) == (group, plural) and each.namespaced), None)
        if kind is None:
            return str(error)
        found = (await client.list(kind, Query(namespace=namespace))).items
        if not any(each.name == name for each in found):
            everywhere = (await client.list(kind, Query())).items
            elsewhere = sorted({each.namespace for each in everywhere if each.name == name})
            if elsewhere:
                return f"{error} in namespace {namespace!r}: there is one in namespace {' or '.join(elsewhere)}, use -n"
    except ApiError:  # may not list them
        return str(error)
    return f"{error} in namespace {namespace!r}{near(name, (each.name for each in found))}"


def start_hint(kubeconfig: Path) -> str:
    """To be put behind an error: how to start the plane that this kubeconfig belongs to; '' if it is not of a plane
    on this machine, or if that runs."""
    from homeport.app.hint import up_command
    from homeport.app.plane.instance import read_instance
    from homeport.app.settings import Settings

    data = kubeconfig.absolute().parent
    if not (data / "state.db").exists() or read_instance(data) is not None:
        return ""
    settings = Settings.make(data)
    return f". No plane is running on {settings.data}: start it with '{up_command(settings)}'"


def kubeconfig_files(given: Path | None) -> list[Path]:
    """The file of --kubeconfig, or else those of $KUBECONFIG."""
    if given is not None:
        return [given]
    return [Path(each) for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
