"""All stand-ins of one cluster, settled with its controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from homeport.client.errors import ApiError
from homeport.sim.machine.workload.kind import SERVICE, Json
from homeport.sim.machine.workload.standin.announcer import Announcer
from homeport.sim.machine.workload.standin.calico import INSTALLATION, settle_calico
from homeport.sim.machine.workload.standin.certmanager import hook as certmanager_hook
from homeport.sim.machine.workload.standin.certmanager import kind as certmanager
from homeport.sim.machine.workload.standin.certmanager.certificate import Certificates
from homeport.sim.machine.workload.standin.certmanager.injector import API_SERVICE, inject
from homeport.sim.machine.workload.standin.certmanager.issuer import Issuers
from homeport.sim.machine.workload.standin.csi.driver import CSI_DRIVER
from homeport.sim.machine.workload.standin.csi.worker import CsiWorker
from homeport.sim.machine.workload.standin.image import container_of, flag, runs, working
from homeport.sim.machine.workload.standin.ingress import INGRESS, INGRESS_CLASS, NGINX, settle_ingresses
from homeport.sim.machine.workload.standin.kubevip import KubeVip, serves_services
from homeport.sim.machine.workload.standin.mark import ADD_ONS
from homeport.sim.machine.workload.standin.metallb import hook as metallb_hook
from homeport.sim.machine.workload.standin.metallb.controller import Controller
from homeport.sim.machine.workload.standin.metallb.kind import BGP, CONTROLLER, L2, POOL, SPEAKER
from homeport.sim.machine.workload.standin.metallb.speaker import Speakers
from homeport.sim.machine.workload.standin.metrics import Metrics
from homeport.sim.machine.workload.standin.review import DEFINITION, KINDS, Hook, Reviews
from homeport.sim.machine.workload.view import View

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import WorkloadCluster

log = structlog.get_logger(__name__)

_READ = (
    SERVICE, POOL, L2, BGP, CSI_DRIVER, API_SERVICE, DEFINITION, INSTALLATION, INGRESS, INGRESS_CLASS,
    *KINDS, *certmanager.KINDS,
)  # fmt: skip
WATCHED = tuple(kind.qualified for kind in _READ)
_RETRY_SECONDS = 5.0
# How long speakers take to find out that one of them is lost.
_SPEAKER_SECONDS = 5.0


def _metallb_secret(pod: Json) -> str:
    container = container_of(pod, *CONTROLLER) or {}
    mounted = {each["name"] for each in container.get("volumeMounts") or () if "serving-certs" in each["mountPath"]}
    for volume in pod["spec"].get("volumes") or ():
        if volume["name"] in mounted and volume.get("secret"):
            return str(volume["secret"]["secretName"])
    return "metallb-webhook-cert"


def _certmanager_secret(pod: Json) -> str:
    container = container_of(pod, *certmanager.WEBHOOK) or {}
    return flag(container, "dynamic-serving-ca-secret-name", "cert-manager-webhook-ca")


HOOKS = (
    Hook(CONTROLLER, _metallb_secret, metallb_hook.check_review, fills_bundle=True),
    Hook(certmanager.WEBHOOK, _certmanager_secret, certmanager_hook.check_review),
    # What its chart's Jobs do for the real one: they make the authority and write it into the configuration.
    Hook(NGINX, lambda pod: "ingress-nginx-admission-ca", lambda store, request: "", fills_bundle=True),
)


class Standins:
    def __init__(self, cluster: WorkloadCluster) -> None:
        self._metallb = Announcer(cluster, _SPEAKER_SECONDS)
        self._kube_vip = Announcer(cluster, _SPEAKER_SECONDS)
        self._vips = KubeVip(self._kube_vip)
        self._controller = Controller()
        self._speakers = Speakers(self._metallb)
        self._reviews = Reviews(cluster, HOOKS)
        self._csi = CsiWorker(cluster)
        self._certificates = Certificates()
        self._metrics = Metrics(cluster)
        self._active = False
        self._cluster = cluster

    def addresses(self) -> frozenset[str]:
        """Addresses that nodes hold for Services."""
        return self._metallb.addresses() | self._kube_vip.addresses()

    async def settle(self, view: View) -> None:
        """Once more after the last Pod of an add-on is gone; then clusters without any cost nothing."""
        found = any(runs(pod, *ADD_ONS) or serves_services(pod) for pod in view.pods)
        if not found and not self._active:
            return
        self._active = found
        steps = (
            settle_calico,
            self._reviews.settle,
            self._settle_metallb,
            self._vips.settle,
            settle_ingresses,
            self._csi.settle,
            self._settle_certmanager,
            self._metrics.settle,
        )
        for step in steps:
            try:
                await step(view)
            except ApiError as error:  # one that is refused does not stop the others
                log.warning("a stand-in of a simulated cluster was refused", why=str(error))
                self._active = True
                view.later(_RETRY_SECONDS)
            except (AttributeError, LookupError, TypeError, ValueError) as error:  # no schema has checked the objects
                why = f"{type(error).__name__}: {error}"  # no traceback: loggers that draw local variables show keys
                log.warning("a stand-in of a simulated cluster can't read an object", why=why)
                view.later(_RETRY_SECONDS)

    async def _settle_metallb(self, view: View) -> None:
        controllers = working(view, *CONTROLLER)
        speakers = working(view, *SPEAKER)
        if not controllers and not speakers:
            self._metallb.settle(view, {})
            return
        if controllers:
            await self._controller.settle(view, controllers[0])
        await self._speakers.settle(view, speakers)

    async def _settle_certmanager(self, view: View) -> None:
        controllers = working(view, *certmanager.CONTROLLER)
        if controllers:
            container = container_of(controllers[0], *certmanager.CONTROLLER) or {}
            own = flag(container, "cluster-resource-namespace")
            if not own or own.startswith("$("):
                own = controllers[0]["metadata"]["namespace"]
            issuers = Issuers(view, own)
            await issuers.settle()
            await self._certificates.settle(view, issuers)
        if working(view, *certmanager.INJECTOR):
            await inject(view, self._cluster.pki.ca_pem)

    async def close(self) -> None:
        self._metallb.close()
        self._kube_vip.close()
        await self._csi.close()
        await self._reviews.close()
