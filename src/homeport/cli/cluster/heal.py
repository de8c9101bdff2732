"""homeport heal"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.client.protocol import Client, Key


@click.command()
@click.argument("machine")
@click.option("--force", is_flag=True, help="Also replace a healthy Machine, or one while others are not ready.")
@click.option("--wait/--no-wait", default=False, help="Wait until the Machine is gone (default: --no-wait).")
@click.option("--timeout", type=click.FloatRange(min=0), default=900.0, show_default=True, help="Seconds to wait.")
@located
def command(where: Where, machine: str, force: bool, wait: bool, timeout: float) -> None:
    """Replace MACHINE now: its control plane or MachineSet deletes it and creates another one.

    The command marks the Machine as a health check does. It refuses the only control plane machine, and a Machine that
    nothing would replace. Without --force it also refuses a healthy Machine, and a control plane machine while another
    one is not ready.
    """
    from homeport.app.upkeep.heal import Unsafe, heal
    from homeport.runtime.clock import SystemClock

    async def work(client: Client, key: Key) -> str:
        owner = await heal(client, key, SystemClock().now(), force=force)
        click.echo(f"Machine {machine} is marked: {owner} replaces it")
        if wait:
            async with asyncio.timeout(timeout):
                await _gone(client, key)
            click.echo(f"Machine {machine} is gone")
        return owner

    try:
        ask(where, machine, work, Unsafe)
    except TimeoutError:
        raise click.ClickException(f"Machine {machine} still exists after {timeout:g} s") from None
    if not wait:
        click.echo(f"next: homeport tree --watch{where.arguments()}")


async def _gone(client: Client, key: Key) -> None:
    from homeport.api.cluster.v1beta2 import Machine
    from homeport.client.protocol import Query

    query = Query(namespace=key.namespace, fields=f"metadata.name={key.name}")
    there = False
    async with client.watch(Machine, query, initial_events=True) as events:
        async for event in events:
            there = there or event.type in ("ADDED", "MODIFIED")
            if event.type == "DELETED" or (event.initial_events_end and not there):
                return
