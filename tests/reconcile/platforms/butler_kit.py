"""A plane with Butler's kinds and the hooks and controllers that a test asks for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from homeport.api.butler.v1alpha1 import GROUP, VERSION
from homeport.api.meta import Resource, Unstructured
from homeport.app.platform import chosen
from homeport.builtin.install import install as install_builtin
from homeport.capi.component import Setup
from homeport.capi.environment import Environment
from homeport.client.protocol import Write
from homeport.platforms.butler.definition import definitions
from homeport.runtime.manager import Manager
from homeport.runtime.testing import Plane, plane

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
_COUNTED = ("Cluster", "MachineDeployment", "KubeadmControlPlane", "Machine")
Install = Callable[[Setup], object]


def butler(kind: str, name: str, spec: dict[str, Any] | None = None, **meta: Any) -> Unstructured:
    found = {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": {"name": name, **meta}}
    return Unstructured(found if spec is None else {**found, "spec": spec})


def cluster_definitions() -> list[dict[str, Any]]:
    """Of the kinds that show what exists for a team."""
    found = (dict(each) for each in chosen().definitions())
    return [each for each in found if each["spec"]["names"]["kind"] in _COUNTED]


@asynccontextmanager
async def butler_plane(
    *install: Install, crds: tuple[dict[str, Any], ...] = (), namespaces: tuple[str, ...] = (), serve: bool = False
) -> AsyncIterator[Plane]:
    named = {each["metadata"]["name"]: each for each in (*definitions(), *cluster_definitions(), *crds)}
    async with plane(crds=[*named.values()], serve=serve) as p:
        for name in namespaces:  # as the plane does before it starts
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await p.client.apply(body, Write(field_manager="test"), kind=NAMESPACE)
        p.manager = Manager(p.server.client(), clock=p.clock)
        install_builtin(p.server, p.manager)  # what is owned goes with its owner
        setup = Setup(p.manager, Environment(p.server.client()), ())
        for each in install:
            each(setup)
        await p.start()
        yield p
