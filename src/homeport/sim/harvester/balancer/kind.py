"""Kinds that only load balancers need."""

from __future__ import annotations

from typing import Final

from homeport.api.meta import Resource

CONFIG_MAP: Final = Resource("", "v1", "ConfigMap", "configmaps")
ENDPOINT_SLICE: Final = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
