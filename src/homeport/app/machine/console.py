"""The console of a VM at its provider: the log that Harvester keeps, or where else to look."""

from __future__ import annotations

import msgspec

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine
from homeport.app.machine.find import FoundMachine
from homeport.client.dial import DialOptions
from homeport.client.errors import ApiError
from homeport.client.protocol import Client, Key
from homeport.infra.error import ProviderError
from homeport.providers.harvester.infracluster.connection import Connector
from homeport.providers.harvester.machine.console import read_console
from homeport.providers.harvester.machine.plan import namespace_of
from homeport.runtime.clock import SystemClock


async def read_kept(client: Client, found: FoundMachine, dial: DialOptions) -> list[str]:
    """The log of a VM on Harvester. None where it keeps none, or the user may not read the credentials."""
    if found.infra.get("kind") != KubevirtMachine.__resource__.kind:
        return []
    machine = msgspec.convert(found.infra, KubevirtMachine, strict=False)
    connector = Connector(client, SystemClock(), dial)
    try:
        session = await connector.connect(await _infra_cluster(client, found))
        return list(await read_console(session, Key(namespace_of(machine.spec, session), found.vm)))
    except (ApiError, ProviderError):
        return []
    finally:
        await connector.close()


async def _infra_cluster(client: Client, found: FoundMachine) -> KubevirtCluster:
    namespace = found.machine.namespace
    cluster = await client.get(Cluster, Key(namespace, str(found.machine["spec"]["clusterName"])))
    ref = cluster.spec.infrastructure_ref
    return await client.get(KubevirtCluster, Key(namespace, ref.name if ref is not None else ""))


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
