"""As for every scenario with machines that boot."""

from __future__ import annotations

from scenario.capi.conftest import certificates_of_any_time, nothing_left_running

__all__ = ["certificates_of_any_time", "nothing_left_running"]
