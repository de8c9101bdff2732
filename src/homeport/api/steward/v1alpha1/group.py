"""The group of Steward's kinds."""

from __future__ import annotations

GROUP = "steward.butlerlabs.dev"
