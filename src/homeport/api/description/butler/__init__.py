"""Fields of Butler's kinds."""

from __future__ import annotations

from collections.abc import Mapping

from homeport.api.description.butler import addon, bootstrap, network, platform, provider, team, tenant, workspace

FIELDS: Mapping[str, str] = {
    **platform.FIELDS,
    **provider.FIELDS,
    **tenant.FIELDS,
    **bootstrap.FIELDS,
    **network.FIELDS,
    **team.FIELDS,
    **addon.FIELDS,
    **workspace.FIELDS,
}
