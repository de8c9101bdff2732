"""What `kubectl get` prints for built-in kinds: the columns of the real server and how to fill them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from homeport.apiserver.kinds.age import age
from homeport.apiserver.kinds.printer import cluster as printer_cluster
from homeport.apiserver.kinds.printer import network as printer_network
from homeport.apiserver.kinds.printer import pod as printer_pod
from homeport.apiserver.kinds.printer import storage as printer_storage
from homeport.apiserver.kinds.printer import workload as printer_workload
from homeport.apiserver.kinds.printer.text import Cell
from homeport.apiserver.resource import Column, Json

Cells = Callable[[Json, datetime], list[Cell]]


@dataclass(frozen=True, slots=True)
class Printer:
    """`cells` gives one value per column, those of `-o wide` included."""

    columns: tuple[Column, ...]
    cells: Cells


def _columns(spec: str) -> tuple[Column, ...]:
    """`Name:name|Desired/integer|Node*`: name, then the type if no string, `*` for wide only, `:format`."""
    return tuple(_column(text) for text in spec.split("|"))


def _column(text: str) -> Column:
    text, _, form = text.partition(":")
    wide = text.endswith("*")
    name, _, kind = text.removesuffix("*").partition("/")
    return Column(name, kind or "string", form, 1 if wide else 0, _DESCRIPTIONS.get(name, ""))


_DESCRIPTIONS = {
    "Name": "The name of the object, unique among its kind in its namespace.",
    "Age": "How long ago the object was created.",
    "Created At": "When the object was created.",
}
_WIDE_TEMPLATE = "Containers*|Images*|Selector*"
_EVENT = (
    "Last Seen|Type|Reason|Object|Subobject*|Source*|Message|First Seen*|Count*|Name*:name",
    printer_cluster.event,
)
_BINDING = ("Name:name|Role|Age|Users*|Groups*|ServiceAccounts*", printer_cluster.binding)
_CREATED = ("Name:name|Created At/date", printer_cluster.created)
_WEBHOOKS = ("Name:name|Webhooks/integer|Age", printer_cluster.webhooks)
_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"

_SPECS: dict[tuple[str, str], tuple[str, Cells]] = {
    ("", "ConfigMap"): ("Name:name|Data|Age", printer_cluster.config_map),
    ("", "Endpoints"): ("Name:name|Endpoints|Age", printer_network.endpoints),
    ("", "Event"): _EVENT,
    ("", "LimitRange"): _CREATED,
    ("", "Namespace"): ("Name:name|Status|Age", printer_cluster.namespace),
    ("", "Node"): (
        "Name:name|Status|Roles|Age|Version|Internal-IP*|External-IP*|OS-Image*|Kernel-Version*|Container-Runtime*",
        printer_cluster.node,
    ),
    ("", "PersistentVolume"): (
        "Name:name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age|"
        "VolumeMode*",
        printer_storage.persistent_volume,
    ),
    ("", "PersistentVolumeClaim"): (
        "Name:name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|VolumeMode*",
        printer_storage.persistent_volume_claim,
    ),
    ("", "Pod"): (
        "Name:name|Ready|Status|Restarts|Age|IP*|Node*|Nominated Node*|Readiness Gates*",
        printer_pod.pod,
    ),
    ("", "PodTemplate"): ("Name:name|Containers|Images|Pod Labels", printer_workload.pod_template),
    ("", "ReplicationController"): (
        f"Name:name|Desired/integer|Current/integer|Ready/integer|Age|{_WIDE_TEMPLATE}",
        printer_workload.replication_controller,
    ),
    ("", "ResourceQuota"): ("Name:name|Request|Limit|Age", printer_cluster.resource_quota),
    ("", "Secret"): ("Name:name|Type|Data|Age", printer_cluster.secret),
    ("", "Service"): (
        "Name:name|Type|Cluster-IP|External-IP|Port(s)|Age|Selector*",
        printer_network.service,
    ),
    ("", "ServiceAccount"): ("Name:name|Age", printer_cluster.named),
    (_ADMISSION, "MutatingWebhookConfiguration"): _WEBHOOKS,
    (_ADMISSION, "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (
        "Name:name|Scope|Versions|Created At/date|Group*|Kind*|ShortNames*|Established/boolean*",
        printer_cluster.custom_resource_definition,
    ),
    ("apiregistration.k8s.io", "APIService"): ("Name:name|Service|Available|Age", printer_cluster.api_service),
    ("apps", "ControllerRevision"): ("Name:name|Controller|Revision|Age", printer_workload.controller_revision),
    ("apps", "DaemonSet"): (
        "Name:name|Desired/integer|Current/integer|Ready/integer|Up-to-date/integer|Available/integer|"
        f"Node Selector|Age|{_WIDE_TEMPLATE}",
        printer_workload.daemon_set,
    ),
    ("apps", "Deployment"): (
        f"Name:name|Ready|Up-to-date|Available|Age|{_WIDE_TEMPLATE}",
        printer_workload.deployment,
    ),
    ("apps", "ReplicaSet"): (
        f"Name:name|Desired/integer|Current/integer|Ready/integer|Age|{_WIDE_TEMPLATE}",
        printer_workload.replica_set,
    ),
    ("apps", "StatefulSet"): ("Name:name|Ready|Age|Containers*|Images*", printer_workload.stateful_set),
    ("autoscaling", "HorizontalPodAutoscaler"): (
        "Name:name|Reference|Targets|MinPods|MaxPods|Replicas|Age",
        printer_workload.autoscaler,
    ),
    ("batch", "CronJob"): (
        f"Name:name|Schedule|Timezone|Suspend/boolean|Active/integer|Last Schedule|Age|{_WIDE_TEMPLATE}",
        printer_workload.cron_job,
    ),
    ("batch", "Job"): (f"Name:name|Status|Completions|Duration|Age|{_WIDE_TEMPLATE}", printer_workload.job),
    ("certificates.k8s.io", "CertificateSigningRequest"): (
        "Name:name|Age|SignerName|Requestor|RequestedDuration|Condition",
        printer_cluster.certificate_signing_request,
    ),
    ("coordination.k8s.io", "Lease"): ("Name:name|Holder|Age", printer_cluster.lease),
    ("discovery.k8s.io", "EndpointSlice"): (
        "Name:name|AddressType|Ports|Endpoints|Age",
        printer_network.endpoint_slice,
    ),
    ("events.k8s.io", "Event"): _EVENT,
    ("networking.k8s.io", "Ingress"): ("Name:name|Class|Hosts|Address|Ports|Age", printer_network.ingress),
    ("networking.k8s.io", "IngressClass"): ("Name:name|Controller|Parameters|Age", printer_network.ingress_class),
    ("networking.k8s.io", "NetworkPolicy"): ("Name:name|Pod-Selector|Age", printer_network.network_policy),
    ("node.k8s.io", "RuntimeClass"): ("Name:name|Handler|Age", printer_cluster.runtime_class),
    ("policy", "PodDisruptionBudget"): (
        "Name:name|Min Available|Max Unavailable|Allowed Disruptions/integer|Age",
        printer_workload.disruption_budget,
    ),
    (_RBAC, "ClusterRole"): _CREATED,
    (_RBAC, "ClusterRoleBinding"): _BINDING,
    (_RBAC, "Role"): _CREATED,
    (_RBAC, "RoleBinding"): _BINDING,
    ("scheduling.k8s.io", "PriorityClass"): (
        "Name:name|Value/integer|Global-Default/boolean|Age|PreemptionPolicy",
        printer_cluster.priority_class,
    ),
    ("storage.k8s.io", "CSIDriver"): (
        "Name:name|AttachRequired/boolean|PodInfoOnMount/boolean|StorageCapacity/boolean|TokenRequests|"
        "RequiresRepublish/boolean|Modes|Age",
        printer_storage.csi_driver,
    ),
    ("storage.k8s.io", "CSINode"): ("Name:name|Drivers/integer|Age", printer_storage.csi_node),
    ("storage.k8s.io", "CSIStorageCapacity"): _CREATED,
    ("storage.k8s.io", "StorageClass"): (
        "Name:name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age",
        printer_storage.storage_class,
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): (
        "Name:name|DriverName|Age",
        printer_storage.volume_attributes_class,
    ),
    ("storage.k8s.io", "VolumeAttachment"): (
        "Name:name|Attacher:name|PV|Node|Attached/boolean|Age",
        printer_storage.volume_attachment,
    ),
}

_PRINTERS = {key: Printer(_columns(spec), cells) for key, (spec, cells) in _SPECS.items()}


def _name_and_created(obj: Json, now: datetime) -> list[Cell]:
    meta = obj.get("metadata") or {}
    return [meta.get("name", ""), age(meta.get("creationTimestamp"), now)]


DEFAULT = Printer(_columns("Name:name|Age"), _name_and_created)


def printer_for(group: str, kind: str) -> Printer:
    """The columns of kinds without columns of their own: name and age."""
    return _PRINTERS.get((group, kind), DEFAULT)
