"""CustomResourceDefinitions as data: their defaults, and everything that an API server refuses in one."""

from __future__ import annotations

from homeport.machinery.crd.check import check, trust
from homeport.machinery.crd.default import default, remember_storage_version
from homeport.machinery.crd.structural import structural_violations
from homeport.machinery.crd.warning import warnings

__all__ = ["check", "default", "remember_storage_version", "structural_violations", "trust", "warnings"]
