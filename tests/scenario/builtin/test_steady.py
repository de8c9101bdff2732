from __future__ import annotations

from scenario.builtin.plane import (
    ACCOUNT,
    CONFIG_MAP,
    CRD,
    NAMESPACE,
    SECRET,
    WIDGET,
    OnPlane,
    Plane,
    widget_definition,
)


def test_a_settled_plane_writes_nothing_for_twelve_hours(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.client.create(widget_definition(), kind=CRD)
        for n in range(10):
            await plane.make(NAMESPACE, f"n{n}")
        await plane.settle()
        for n in range(10):
            owner = await plane.make(WIDGET, "owner", namespace=f"n{n}")
            await plane.make(ACCOUNT, "robot", namespace=f"n{n}")
            for m in range(100):
                kind = (CONFIG_MAP, SECRET)[m % 2]
                await plane.make(kind, f"c{m}", namespace=f"n{n}", owners=(owner,))
        await plane.settle(60)
        before = plane.server.store.revision
        await plane.settle(12 * 3600)  # resyncs included
        assert plane.server.store.revision == before

    on_plane(scenario)
