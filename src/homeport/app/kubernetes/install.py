"""Prepares a Kubernetes cluster of others for the controllers: kinds, namespaces and clusterctl's inventory."""

from __future__ import annotations

from collections.abc import Callable

from homeport.app.definition import DefinitionError, install_definitions
from homeport.app.object.deployment import create_namespaces, create_objects
from homeport.app.object.inventory import publish_inventory
from homeport.app.platform import Platform
from homeport.capi.definition.stored import stored_alone
from homeport.client.rest import RestClient

_EMBEDDED = "homeport"  # in the version that an embedded server reports


class InstallError(Exception):
    """The cluster can't be prepared; the text says why and what to do."""


async def install(client: RestClient, platform: Platform, progress: Callable[[str], None]) -> None:
    """Repeat it after any failure, and after an update of Homeport. Raises InstallError and ApiError."""
    version = str((await client.raw("GET", "/version")).json().get("gitVersion", ""))
    if _EMBEDDED in version:
        raise InstallError("this is a plane of `homeport up`, which installs everything at its start: nothing to do")
    definitions = [stored_alone(each) for each in platform.definitions()]
    progress(f"installing {len(definitions)} CustomResourceDefinitions")
    try:
        await install_definitions(client, definitions)
    except DefinitionError as error:
        raise InstallError(str(error)) from error
    progress("creating namespaces and the inventory of clusterctl")
    await create_namespaces(client, platform.namespaces())
    await create_objects(client, platform.objects())
    await publish_inventory(client, platform.inventory())
