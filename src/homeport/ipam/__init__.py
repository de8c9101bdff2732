"""Addresses from pools that are kept as objects: IPAddressClaims get an IPAddress each, and no two the same."""

from __future__ import annotations

from homeport.ipam.admission import register
from homeport.ipam.install import install

__all__ = ["install", "register"]
