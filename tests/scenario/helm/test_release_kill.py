"""The process dies after every single write of an install, upgrade, rollback and uninstall, and another one goes on.

The end is always the same: no object is lost, none is made twice, and no hook that succeeded runs again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from homeport.client.errors import Conflict, Timeout, Unavailable
from homeport.helm.release.operation import Outcome
from homeport.helm.release.releases import Releases
from homeport.runtime.testing import virtual
from scenario.helm.small import CONFIG_MAP, JOB, Cluster, Killed, chart, cluster, config_map, desired, job

Call = Callable[[Releases], Awaitable[Outcome]]

FIRST = desired(
    chart(
        {
            "before": job("before", "pre-install,pre-upgrade,pre-rollback", 1),
            "between": job("between", "pre-install,post-install", 2, "before-hook-creation,hook-succeeded"),
            "one": config_map("one"),
            "two": config_map("two"),
            "after": job("after", "post-install,post-upgrade,post-rollback", policy="hook-succeeded"),
            "end": job("end", "pre-delete"),
            "over": job("over", "post-delete", policy="hook-succeeded"),
        }
    )
)
SECOND = desired(
    {
        **FIRST.files,
        **chart({"one": config_map("one", "2"), "two": "", "three": config_map("three")}, version="2.0.0"),
    }
)
MOST_WRITES = 60


async def go_on(c: Cluster, call: Call, life: int) -> int:
    """Runs a call with processes of which the first dies after so many writes; gives whether it did."""
    died = False

    async def once() -> Outcome:
        nonlocal died
        if died:
            return await call(c.releases)
        try:
            return await call(dying)
        except Killed:
            died = True
            return await call(c.releases)

    dying = c.dying(life)
    await c.until_done(once)
    return died


async def uids(c: Cluster) -> dict[str, str]:
    listed = await c.client.list(CONFIG_MAP)
    return {each.name: each.uid for each in listed.items if each.namespace == "default"}


async def install(releases: Releases) -> Outcome:
    return await releases.ensure(FIRST)


async def upgrade(releases: Releases) -> Outcome:
    return await releases.ensure(SECOND)


async def rollback(releases: Releases) -> Outcome:
    """As a controller asks for it: until the newest revision is the rollback."""
    newest = await releases.current("default", "web")
    if newest is not None and newest.status == "deployed" and newest.description == "Rollback to 1":
        return Outcome(newest)
    return await releases.rollback("default", "web", 1)


async def uninstall(releases: Releases) -> Outcome:
    return await releases.uninstall("default", "web")


async def every_death(steps: list[Call], check: Callable[[Cluster], Awaitable[None]]) -> int:
    """The last step is done once for each of its writes, with a death after it. Gives how many there are."""
    for life in range(1, MOST_WRITES):
        async with cluster() as c:
            for step in steps[:-1]:
                await c.until_done(lambda step=step: step(c.releases))  # type: ignore[misc]
            c.jobs.clear()
            died = await go_on(c, steps[-1], life)
            await check(c)
        if not died:
            return life - 1
    raise AssertionError("it never came to an end without a death")


@virtual
async def test_install_survives_a_death_after_every_write() -> None:
    async def check(c: Cluster) -> None:
        assert c.jobs == ["before", "between", "after", "between"]
        assert await c.names() == {"one", "two"}
        assert await c.names(JOB) == {"before"}
        assert await c.statuses() == ["deployed"]

    assert await every_death([install], check) > 15


@virtual
async def test_upgrade_survives_a_death_after_every_write() -> None:
    async def check(c: Cluster) -> None:
        assert c.jobs == ["before", "after"]
        assert await c.names() == {"one", "three"}
        assert await c.value("one") == "2"
        assert await c.statuses() == ["superseded", "deployed"]

    assert await every_death([install, upgrade], check) > 10


@virtual
async def test_rollback_survives_a_death_after_every_write() -> None:
    async def check(c: Cluster) -> None:
        assert c.jobs == ["before", "after"]
        assert await c.names() == {"one", "two"}
        assert await c.value("one") == "1"
        assert await c.statuses() == ["superseded", "superseded", "deployed"]

    assert await every_death([install, upgrade, rollback], check) > 10


@virtual
async def test_uninstall_survives_a_death_after_every_write() -> None:
    async def check(c: Cluster) -> None:
        assert c.jobs == ["end", "over"]
        assert await c.names() == set()
        assert await c.statuses() == []

    assert await every_death([install, upgrade, uninstall], check) > 8


@virtual
async def test_an_upgrade_that_dies_keeps_the_objects_that_stay() -> None:
    for life in range(1, MOST_WRITES):
        async with cluster() as c:
            await c.until_done(lambda: install(c.releases))
            before = (await uids(c))["one"]
            died = await go_on(c, upgrade, life)
            assert (await uids(c))["one"] == before
        if not died:
            return
    pytest.fail("it never came to an end without a death")


@virtual
async def test_something_else_that_is_desired_after_a_death_replaces_the_pending_revision() -> None:
    for life in range(1, MOST_WRITES):
        async with cluster() as c:
            dying = c.dying(life)
            try:
                await c.until_done(lambda dying=dying: install(dying))  # type: ignore[misc]
            except Killed:
                await c.until_done(lambda: upgrade(c.releases))
            else:
                return
            assert await c.names() == {"one", "three"}
            newest = await c.releases.current("default", "web")
            assert newest is not None
            assert newest.status == "deployed", newest.description
    pytest.fail("it never came to an end without a death")


@pytest.mark.parametrize("seed", range(6))
def test_lost_requests_and_answers_change_nothing_about_the_end(seed: int) -> None:
    @virtual
    async def run() -> None:
        async with cluster() as c:
            releases = c.flaky(seed)

            async def stubborn(call: Call) -> None:
                async def once() -> Outcome:
                    for _ in range(200):
                        try:
                            return await call(releases)
                        except (Unavailable, Timeout, Conflict):
                            continue
                    raise AssertionError("it never came through")

                await c.until_done(once)

            await stubborn(install)
            assert c.jobs == ["before", "between", "after", "between"]
            assert await c.names() == {"one", "two"}
            await stubborn(upgrade)
            assert await c.names() == {"one", "three"}
            await stubborn(rollback)
            assert await c.names() == {"one", "two"}
            assert c.jobs[4:] == ["before", "after", "before", "after"]
            await stubborn(uninstall)
            assert c.jobs[8:] == ["end", "over"]
            assert await c.names() == set()
            assert await c.statuses() == []

    run()


@virtual
async def test_a_release_can_be_uninstalled_wherever_its_install_stopped() -> None:
    for life in range(1, MOST_WRITES):
        async with cluster() as c:
            dying = c.dying(life)
            try:
                await c.until_done(lambda dying=dying: install(dying))  # type: ignore[misc]
            except Killed:
                await c.until_done(lambda: uninstall(c.releases))
            else:
                return
            assert await c.names() == set()
            assert await c.statuses() == []
    pytest.fail("it never came to an end without a death")
