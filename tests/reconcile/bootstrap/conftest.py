from __future__ import annotations

from loopback import stay_on_loopback  # noqa: F401 - a fixture for every test below
