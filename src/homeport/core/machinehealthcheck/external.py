"""External remediation: creates a request from a template, and deletes it when the Machine is healthy."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Machine, MachineHealthCheckRemediationTemplateReference
from homeport.api.meta import Resource
from homeport.capi.name import TEMPLATE_SUFFIX, Condition, Reason
from homeport.capi.object.ownership import owner_reference
from homeport.capi.object.template import clone
from homeport.capi.resolution import plural
from homeport.client.absence import drop_object
from homeport.client.errors import AlreadyExists, ApiError, NotFound
from homeport.client.protocol import Client, Key, Write
from homeport.machinery import condition
from homeport.machinery.gvk import parse_api_version

ReasonAndMessage = tuple[str, str]  # reason and message of the condition ExternallyRemediated


class External:
    """Requests have the name of their Machine: there is never a second one. They are asked for live, and only for
    Machines that are unhealthy or were: too rarely for a watch of kinds that may not even be installed."""

    def __init__(self, client: Client, write: Write) -> None:
        self._client = client
        self._write = write

    async def request(self, ref: MachineHealthCheckRemediationTemplateReference, machine: Machine) -> ReasonAndMessage:
        """Makes sure that there is a request; says how that went."""
        namespace = machine.metadata.namespace
        kind = _kind(ref, ref.kind)
        request = _kind(ref, ref.kind.removesuffix(TEMPLATE_SUFFIX))
        try:
            await self._client.get(request, Key(namespace, machine.metadata.name))
        except NotFound:
            pass
        else:
            return _asked(request, machine)
        try:
            template = await self._client.get(kind, Key(namespace, ref.name))
        except NotFound:
            text = f"{ref.kind} {ref.name} does not exist: create it, or correct spec.remediation.templateRef"
            return Reason.REMEDIATION_TEMPLATE_NOT_FOUND, text
        body = clone(
            template,
            name=machine.metadata.name,
            namespace=namespace,
            cluster_name=machine.spec.cluster_name,
            owner=owner_reference(machine),
        )
        try:
            await self._client.create(body, self._write, kind=request)
        except AlreadyExists:
            return _asked(request, machine)
        except ApiError as error:
            return Reason.REMEDIATION_REQUEST_CREATION_FAILED, f"{request.kind} could not be created: {error}"
        return _asked(request, machine)

    async def withdraw(self, ref: MachineHealthCheckRemediationTemplateReference, machine: Machine) -> None:
        """The Machine is healthy: deletes the remediation request."""
        if condition.find(machine.status.conditions, Condition.EXTERNALLY_REMEDIATED) is None:
            return
        request = _kind(ref, ref.kind.removesuffix(TEMPLATE_SUFFIX))
        await drop_object(self._client, request, Key(machine.metadata.namespace, machine.metadata.name))


def _kind(ref: MachineHealthCheckRemediationTemplateReference, kind: str) -> Resource:
    found: Any = parse_api_version(ref.api_version)
    return Resource(found.group, found.version, kind, plural(kind))


def _asked(request: Resource, machine: Machine) -> ReasonAndMessage:
    return Reason.WAITING_FOR_REMEDIATION, f"{request.kind} {machine.metadata.name} requests it"
