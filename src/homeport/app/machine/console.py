"""Where to look for the console of a VM that has no log here."""

from __future__ import annotations

from homeport.app.machine.find import FoundMachine


def elsewhere(found: FoundMachine, arguments: str = "", *, simulated: bool) -> str:
    """The provider's own way to the console. `arguments`: options that name the plane, for the next command."""
    vm, kind, namespace = found.vm, str(found.infra.get("kind") or ""), _vm_namespace(found)
    login = f"or log in with 'homeport ssh {found.machine.name}{arguments}' and read /var/log/cloud-init-output.log"
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
