"""The content of a template: its chart, or its manifests as a chart.

A ConfigMap or Secret without a Chart.yaml holds plain manifests. They are templates like those of charts: with a key
values.yaml they have defaults, with values.schema.json their values have types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from homeport.capi.chartsettings import ChartSettings
from homeport.client.absence import find_object
from homeport.client.protocol import Client, Key
from homeport.helm.errors import SourceError
from homeport.helm.source.held import ARCHIVES
from homeport.helm.source.reference import ChartLocation
from homeport.helm.source.source import FetchedChart
from homeport.machinery import yaml
from homeport.machinery.chart import ChartError, load_chart
from homeport.platforms.k0rdent.name import MANAGED_LABEL, SYSTEM_NAMESPACE
from homeport.platforms.k0rdent.source import Origin, Sources

_TOP = ("values.yaml", "values.schema.json")
_PLAIN_VERSION = "0.1.0"


class TemplateCharts:
    def __init__(self, client: Client, settings: ChartSettings) -> None:
        self._client = client
        self._sources = Sources(client, settings)

    async def fetch(self, template: Any) -> FetchedChart:
        """As the template is now: a range of versions is resolved again. Raises SourceError."""
        return await self._fetch(template, await self._find(template))

    async def fetch_resolved(self, template: Any) -> FetchedChart:
        """The version that the template reports: clusters get what was found valid. Raises SourceError."""
        origin = await self._find(template)
        if origin.holder is None and not origin.digest and template.status.chart_version:
            origin = replace(origin, version=template.status.chart_version)
        return await self._fetch(template, origin)

    async def _find(self, template: Any) -> Origin:
        return await self._sources.find(template.spec.helm, await self._namespace(template))

    async def _fetch(self, template: Any, origin: Origin) -> FetchedChart:
        holder = origin.holder
        if holder is not None:
            files = await self._sources.files(holder)
            if "Chart.yaml" not in files and not any(name.endswith(ARCHIVES) for name in files):
                return _plain(template.metadata.name, files, str(holder))
        return await self._sources.fetch(origin)

    async def _namespace(self, template: Any) -> str:
        """Where its sources are. A copy by AccessManagement has those of its original, which it must equal."""
        own = template.metadata.namespace or SYSTEM_NAMESPACE
        if own == SYSTEM_NAMESPACE or template.metadata.labels.get(MANAGED_LABEL) != "true":
            return own
        original = await find_object(self._client, type(template), Key(SYSTEM_NAMESPACE, template.metadata.name))
        if original is None:
            return own
        return SYSTEM_NAMESPACE if original.spec == template.spec else own


def _plain(name: str, files: Mapping[str, bytes], where: str) -> FetchedChart:
    manifests = [key for key in files if key not in _TOP and key.endswith((".yaml", ".yml", ".json", ".tpl"))]
    if not manifests:
        seen = ", ".join(sorted(files))
        raise SourceError(
            f"{where} holds neither a chart nor manifests: expected Chart.yaml, a key that ends in .tgz, or keys that "
            f"end in .yaml; keys are {seen}"
        )
    about = yaml.dump({"apiVersion": "v2", "name": name, "version": _PLAIN_VERSION})
    made = {key: files[key] for key in _TOP if key in files}
    made |= {f"templates/{key}": files[key] for key in manifests} | {"Chart.yaml": about.encode()}
    try:
        return FetchedChart(made, load_chart(made), ChartLocation(path=where))
    except ChartError as error:
        raise SourceError(f"{where}: {error}") from None
