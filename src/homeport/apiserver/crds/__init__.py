"""CustomResourceDefinitions at work: the kinds that they define are served while they exist."""

from __future__ import annotations

from homeport.apiserver.crds.controller import DEFINITIONS, ConversionCaller, ConversionHook, CustomResources
from homeport.apiserver.crds.served import build_served
from homeport.apiserver.crds.strategy import DefinitionStrategy

__all__ = [
    "DEFINITIONS",
    "ConversionCaller",
    "ConversionHook",
    "CustomResources",
    "DefinitionStrategy",
    "build_served",
]
