"""How workload clusters on Harvester and KubeVirt get their cloud controller manager."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine, ObjectReference
from homeport.capi.cloud import CloudConfig, CloudFile, CloudRequest, CloudSupport, Sources
from homeport.capi.name import CLUSTER_NAME_LABEL, label_value
from homeport.client.dial import DIRECT, DialOptions
from homeport.client.protocol import Client, Key, Query
from homeport.infra.error import Misconfigured
from homeport.providers.harvester.cloud import config as cloudconfig
from homeport.providers.harvester.cloud.instance import HarvesterCloud
from homeport.providers.harvester.infracluster.connection import Connector
from homeport.runtime.clock import Clock

BALANCERS = "ccm.homeport.dev/load-balancers"  # "false" on a Cluster: other controllers serve its Services


class Configurator:
    """Renders harvester_config.json from a KubevirtCluster, its machines and its Secret."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._connector = Connector(client, clock, DIRECT)  # only reads objects: nothing is dialled

    def sources(self, infra: KubevirtCluster) -> Sources:
        return self._connector.sources(infra)

    async def render(self, infra: KubevirtCluster, request: CloudRequest) -> CloudConfig:
        ref, namespace = infra.spec.infra_cluster_secret_ref, infra.metadata.namespace
        named = ref is not None and bool(ref.name)
        if request.secret and not named:
            raise Misconfigured(
                "spec.infraClusterSecretRef: is required for the cloud controller manager, which runs in the workload "
                "cluster and needs a kubeconfig of the KubeVirt cluster: create a Secret with one, or set the "
                'annotation ccm.homeport.dev/managed: "false" on the Cluster'
            )
        machines = await self._connector.access(ref, namespace)
        place = _place(ref, namespace) if not request.secret else Key(request.namespace, request.secret)
        listed = await self._machines(request)
        host = request.cluster.spec.control_plane_endpoint.host or infra.spec.control_plane_endpoint.host
        front = infra.spec.control_plane_load_balancer
        config = cloudconfig.CloudConfig(
            cluster=label_value(request.cluster.metadata.name),
            namespaces=_namespaces(listed, machines.namespace),
            secret=place.name,
            secret_namespace=place.namespace,
            virtual=host,
            cluster_uid=infra.metadata.uid,
            cluster_namespace=label_value(request.cluster.metadata.namespace),
            balances=request.cluster.metadata.annotations.get(BALANCERS, "").lower() != "false",
            ipam=front.ipam if front is not None else "pool",
            ip_pool=front.ip_pool if front is not None else "",
            complete=all(_same(each.spec.infra_cluster_secret_ref, infra) for each in listed),
            pools=request.pools,
        )
        secret: dict[str, str] = {}
        if request.secret and ref is not None:
            given = await self._connector.cloud_access(ref, namespace)
            secret = {"kubeconfig": cloudconfig.reduced(given.content), "namespace": machines.namespace}
        return CloudConfig(cloudconfig.FILE, cloudconfig.render_config(config), secret, config.balances)

    async def _machines(self, request: CloudRequest) -> Sequence[KubevirtMachine]:
        meta = request.cluster.metadata
        query = Query(namespace=meta.namespace, labels=f"{CLUSTER_NAME_LABEL}={label_value(meta.name)}")
        return (await self._client.list(KubevirtMachine, query)).items


def _place(ref: ObjectReference | None, namespace: str) -> Key:
    """The Secret that a KubevirtCluster refers to; without a name: its VMs are in the management cluster."""
    return Key(namespace, "") if ref is None else Key(ref.namespace or namespace, ref.name)


def _namespaces(machines: Iterable[KubevirtMachine], first: str) -> tuple[str, ...]:
    """Templates may put VMs into a namespace of their own."""
    own = {str(each.spec.virtual_machine_template.metadata.get("namespace") or first) for each in machines}
    return (first, *sorted(own - {first}))


def _same(ref: ObjectReference | None, infra: KubevirtCluster) -> bool:
    """Whether a machine is where its cluster is."""
    held, namespace = infra.spec.infra_cluster_secret_ref, infra.metadata.namespace
    if ref is None or not ref.name or held is None:
        return True
    return (ref.namespace or namespace, ref.name) == (held.namespace or namespace, held.name)


def parse(text: str, namespace: str) -> CloudFile:
    config = cloudconfig.parse_config(text, namespace)

    def open_cloud(client: Client, clock: Clock, dial: DialOptions) -> HarvesterCloud:
        return HarvesterCloud(config, Connector(client, clock, dial))

    return CloudFile(open_cloud, config.pools)


CLOUD = CloudSupport("harvester", cloudconfig.FILE, KubevirtCluster, parse, Configurator)
