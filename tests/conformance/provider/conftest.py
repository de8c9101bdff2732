"""The providers that the suite tests. Each entry opens a simulated vendor; adding a provider takes one line."""

from __future__ import annotations

from functools import partial

import pytest

from conformance.provider.acme import open_acme
from conformance.provider.harvester import open_harvester
from conformance.provider.nutanix import open_nutanix
from conformance.provider.vendor import Open

VENDORS: dict[str, Open] = {
    "nutanix-v4": partial(open_nutanix, version="v4"),
    "nutanix-v3": partial(open_nutanix, version="v3"),
    "acme": open_acme,
    "harvester": open_harvester,
}


@pytest.fixture(params=list(VENDORS))
def vendor(request: pytest.FixtureRequest) -> Open:
    return VENDORS[request.param]
