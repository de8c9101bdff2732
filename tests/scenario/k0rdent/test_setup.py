"""`homeport init`: values for the plane, and a Management that becomes Ready."""

from __future__ import annotations

import pytest

from homeport.platforms.k0rdent.setup import SetupError, set_up
from homeport.runtime.testing import virtual
from scenario.k0rdent.stage import deployments


@virtual
async def test_values_are_merged_into_management_and_what_is_not_ready_says_why() -> None:
    async with deployments() as stage:
        await set_up(stage.client, {"controller": {"enableTelemetry": False}}, 60.0)
        found = await set_up(stage.client, {"velero": {"enabled": False}}, 60.0)
        assert found.spec.core is not None
        assert found.spec.core.kcm is not None
        assert found.spec.core.kcm.config == {"controller": {"enableTelemetry": False}, "velero": {"enabled": False}}
        await stage.plane.stop()
        with pytest.raises(SetupError, match="is not Ready after 5 s"):
            await set_up(stage.client, {"more": True}, 5.0)
