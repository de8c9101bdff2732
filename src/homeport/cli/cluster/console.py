"""homeport console"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.app.machine.find import FoundMachine
    from homeport.client.http import HttpClient
    from homeport.client.protocol import Key


@click.command()
@click.argument("machine")
@click.option(
    "--tail", metavar="N", type=click.IntRange(1), help="Print the last N lines (default: all that are kept)."
)
@located
def command(where: Where, machine: str, tail: int | None) -> None:
    """Print the console log of the VM of Machine MACHINE.

    It shows what the image, cloud-init, kubeadm or k0s print while the machine starts. Simulated machines have one.
    Prism Central and Harvester have no API for the log of a console: the message then says where to look.
    """
    from homeport.app.doctor.console import read_simulated
    from homeport.app.machine.find import NoMachine, find_machine

    async def work(client: HttpClient, key: Key) -> list[str]:
        found = await find_machine(client, key)
        consoles = await read_simulated(client)
        if found.vm in consoles:
            return consoles[found.vm]
        raise NoMachine(_elsewhere(found, machine, where, simulated=bool(consoles)))

    lines = ask(where, machine, work, NoMachine)
    for line in lines[-tail:] if tail else lines:
        click.echo(line)


def _elsewhere(found: FoundMachine, machine: str, where: Where, *, simulated: bool) -> str:
    """The provider's own way to the console."""
    vm, kind, namespace = found.vm, str(found.infra.get("kind") or ""), _vm_namespace(found)
    login = f"or log in with 'homeport ssh {machine}{where.arguments()}' and read /var/log/cloud-init-output.log"
    if simulated:
        return f"VM {vm} has printed nothing on its console: it does not exist yet, is off, or does not boot"
    if kind.startswith("Nutanix"):
        own = f"in Prism Central, open Compute > VMs > {vm} > Launch Console"
        return f"Prism Central has no API for console logs: {own}, {login}"
    if kind.startswith("Kubevirt"):
        log = f"kubectl logs -n {namespace} -l vm.kubevirt.io/name={vm} -c guest-console-log"
        own = f"run 'virtctl console -n {namespace} {vm}', or '{log}' if Harvester keeps console logs"
        return f"Harvester has the console of VM {vm}: with its kubeconfig, {own}; {login}"
    return f"VM {vm} has no console log here: look at its console at the provider, {login}"


def _vm_namespace(found: FoundMachine) -> str:
    """The namespace of a VM on Harvester: that of its template, or else that of the machine."""
    template = (found.infra.get("spec") or {}).get("virtualMachineTemplate") or {}
    return str((template.get("metadata") or {}).get("namespace") or found.machine.namespace)
