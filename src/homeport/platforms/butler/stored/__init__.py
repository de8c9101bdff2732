"""Kinds that are validated and stored, and reported as not acted on."""

from __future__ import annotations

from homeport.platforms.butler.stored.reconciler import install

__all__ = ["install"]
