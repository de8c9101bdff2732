"""Providers whose ProviderTemplate has the chart of a user: Helm releases in kcm-system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from homeport.api.k0rdent.v1beta1 import ProviderTemplate
from homeport.client.errors import BadRequest, Forbidden, Invalid
from homeport.client.protocol import Client, Query
from homeport.helm.errors import HelmError
from homeport.helm.release.releases import Releases
from homeport.platforms.k0rdent.management.credential import SECRET
from homeport.platforms.k0rdent.name import (
    COMPONENT,
    COMPONENT_LABEL,
    MANAGED,
    RELEASE_NAME_LABEL,
    RELEASE_NAMESPACE_LABEL,
    SYSTEM_NAMESPACE,
)
from homeport.platforms.k0rdent.template.chart import TemplateCharts
from homeport.platforms.k0rdent.template.client import template_client
from homeport.platforms.k0rdent.template.release import OWNER_LABEL, Subject, TemplateReleases, release_of
from homeport.platforms.k0rdent.template.value import check_values
from homeport.runtime.clock import Clock

_PREFIX = "provider-"


class ProviderReleases:
    def __init__(self, client: Client, clock: Clock, charts: TemplateCharts) -> None:
        self._client = client
        self._clock = clock
        self._charts = charts
        self._releases = TemplateReleases(clock)

    async def hold(self, name: str, template: ProviderTemplate, config: Mapping[str, Any]) -> str:
        """What is wrong, or still going on; '' if the provider is installed and ready."""
        if not template.status.valid:
            why = template.status.validation_error or "it is being read"
            return f"ProviderTemplate {template.metadata.name} is not valid: {why}"
        try:
            return await self._converge(name, template, config)
        except (HelmError, Invalid, Forbidden, BadRequest) as error:
            return str(error)

    async def _converge(self, name: str, template: ProviderTemplate, config: Mapping[str, Any]) -> str:
        fetched = await self._charts.fetch_resolved(template)
        wrong = check_values(fetched.chart.schema, fetched.chart.values, config)
        if wrong:
            return "; ".join(f"config{each.field.removeprefix('spec.config')}: {each.message}" for each in wrong)
        client = self._marking(name)
        outcome = await self._releases.ensure(client, release_of(_subject(name), fetched.files, config))
        if outcome.wait is not None:
            return f"is being installed: {outcome.wait.message}"
        if outcome.release is None or outcome.failed:
            return "" if outcome.release is None else outcome.release.description
        wait = await Releases(client, self._clock).wait(outcome.release)
        return "" if wait is None else f"is installed and not ready yet: {wait.message}"

    async def drop_others(self, names: Iterable[str]) -> str:
        """Uninstalls providers that are no longer listed. Their CustomResourceDefinitions stay. '' if none is left."""
        query = Query(namespace=SYSTEM_NAMESPACE, labels=f"owner=helm,{OWNER_LABEL}")
        held = {
            str(each.metadata["labels"][OWNER_LABEL]).removeprefix(_PREFIX)
            for each in (await self._client.list(SECRET, query)).items
            if str(each.metadata["labels"][OWNER_LABEL]).startswith(_PREFIX)
        }
        for name in sorted(held - set(names)):
            try:
                outcome = await self._releases.uninstall(self._marking(name), _subject(name))
            except HelmError as error:
                return str(error)
            if outcome.wait is not None:
                return outcome.wait.message
        return ""

    def _marking(self, name: str) -> Client:
        labels = {
            **MANAGED,
            COMPONENT_LABEL: COMPONENT,
            RELEASE_NAME_LABEL: name,
            RELEASE_NAMESPACE_LABEL: SYSTEM_NAMESPACE,
        }
        return template_client(self._client, labels, namespace=SYSTEM_NAMESPACE)


def _subject(name: str) -> Subject:
    return Subject(SYSTEM_NAMESPACE, name, f"{_PREFIX}{name}")
