"""What depends on who writes an object, on the embedded API server."""

from __future__ import annotations

from homeport.apiserver.request import User
from homeport.client.protocol import Client
from homeport.platforms.butler.author import install as author
from reconcile.platforms.author_cases import CHECKS, prepare
from reconcile.platforms.butler_kit import butler_plane


async def test_members_and_platform_administrators_gain_no_rights_by_what_they_write() -> None:
    async with butler_plane() as p:
        author.join(p.server)
        await prepare(p.client)

        def as_(user: str) -> Client:
            return p.server.client(User(user, ("system:authenticated",)))

        for check in CHECKS:
            await check(as_)
