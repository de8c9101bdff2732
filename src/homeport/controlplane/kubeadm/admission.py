"""What a KubeadmControlPlane and its template may say, and what is filled in when they do not. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from homeport.api.controlplane.v1beta2 import KubeadmControlPlane, KubeadmControlPlaneTemplate
from homeport.capi import kubeadmconfig, version
from homeport.capi.name import KUBEADM_CONTROL_PLANE_FINALIZER, SKIP_COREDNS
from homeport.capi.object import naming
from homeport.client.errors import Cause
from homeport.controlplane.kubeadm.plan.rollout import comparable
from homeport.controlplane.kubeadm.workload.addon import AddonError, numbers
from homeport.machinery.patch import diff_merge
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]

_DEFAULT_CA_DAYS = 3650
_TAG = re.compile(r"[\w][\w.-]{0,127}")
_NAMES = ("cluster.name", "kubeadmControlPlane.name")
_RESERVED_TAINTS = (
    "node.cluster.x-k8s.io/uninitialized",
    "node.cluster.x-k8s.io/outdated-revision",
    "node-role.kubernetes.io/master",
)
_RESERVED_TAINT_PREFIXES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
# What must stay as it was made: machines that are there have it, and it can't be changed on them or by a rollout.
_FIXED = (
    ("clusterConfiguration", "controlPlaneEndpoint"),
    ("clusterConfiguration", "certificatesDir"),
    ("clusterConfiguration", "caCertificateValidityPeriodDays"),
)


def register(hooks: Hooks) -> None:
    """Also for changes by the scale subresource: they arrive here as the whole object."""
    hooks.add(KubeadmControlPlane, default=default, validate=validate)
    hooks.add(KubeadmControlPlaneTemplate, validate=validate_template)


# -- defaults ----------------------------------------------------------------------------------------------------


def default(obj: Json, old: Json | None) -> None:
    metadata, spec = obj["metadata"], obj.setdefault("spec", {})
    if old is None:
        # Here it costs no write of its own, and there is no moment at which the object can vanish unseen.
        finalizers = metadata["finalizers"] = metadata.get("finalizers") or []
        if KUBEADM_CONTROL_PLANE_FINALIZER not in finalizers:
            finalizers.append(KUBEADM_CONTROL_PLANE_FINALIZER)
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    if spec.get("version") and not str(spec["version"]).startswith("v"):
        spec["version"] = f"v{spec['version']}"
    rollout = spec["rollout"] = spec.get("rollout") or {}
    strategy = rollout["strategy"] = rollout.get("strategy") or {}
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    rolling = strategy["rollingUpdate"] = strategy.get("rollingUpdate") or {}
    if rolling.get("maxSurge") is None:
        rolling["maxSurge"] = 1


# -- validation --------------------------------------------------------------------------------------------------


def validate(obj: Json, old: Json | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    found = [*_replicas(spec), *_version(spec), *_common(spec, "spec", spec.get("replicas"))]
    ref = ((spec.get("machineTemplate") or {}).get("spec") or {}).get("infrastructureRef") or {}
    for name in ("apiGroup", "kind", "name"):
        if not ref.get(name):
            where = f"spec.machineTemplate.spec.infrastructureRef.{name}"
            found.append(Cause("FieldValueRequired", "set the template of the machines", where))
    if old is not None and not found:
        found += _changes(obj, old)
    return found


def validate_template(obj: Json, old: Json | None) -> list[Cause]:
    spec = _template_spec(obj)
    found = list(_common(spec, "spec.template.spec", None))
    if old is not None and _frozen(_template_spec(old)) != _frozen(spec):
        changed = ", ".join(sorted(_paths(diff_merge(_frozen(_template_spec(old)), _frozen(spec)))))
        text = f"immutable ({changed}): create a new template and refer to it"
        found.append(Cause("FieldValueForbidden", text, "spec.template.spec"))
    return found


def _template_spec(obj: Json) -> Json:
    spec: Json = ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}
    return spec


def _frozen(spec: Json) -> Json:
    """The spec in a form in which leaving out a default of an older version is not a change."""
    rollout = dict(spec.get("rollout") or {})
    if rollout.get("strategy") == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}:
        rollout.pop("strategy")
    made = {name: value for name, value in spec.items() if name not in ("rollout", "kubeadmConfigSpec")}
    if rollout:
        made["rollout"] = rollout
    made["kubeadmConfigSpec"] = _complete(spec.get("kubeadmConfigSpec") or {})
    return made


def _complete(spec: Json) -> Json:
    """`comparable`, and what that leaves out."""
    kept = {name: (spec.get(name) or {}).get("discovery") for name in ("initConfiguration", "joinConfiguration")}
    cluster = spec.get("clusterConfiguration") or {}
    return comparable(spec) | {"": [kept, cluster.get("dns"), cluster.get("controlPlaneEndpoint")]}


def _replicas(spec: Json) -> Iterator[Cause]:
    replicas = spec.get("replicas")
    if not isinstance(replicas, int):
        yield Cause("FieldValueRequired", "set the number of control plane machines", "spec.replicas")
        return
    if replicas <= 0:
        text = "at least one control plane machine is required: to remove all, delete the Cluster"
        yield Cause("FieldValueForbidden", text, "spec.replicas")
    elif replicas % 2 == 0 and not _external_etcd(spec):
        text = (
            f"{replicas} etcd members tolerate no more failures than {replicas - 1}: use an odd number, or an external "
            "etcd"
        )
        yield Cause("FieldValueForbidden", text, "spec.replicas")


def _version(spec: Json) -> Iterator[Cause]:
    text = str(spec.get("version") or "")
    if not text.startswith("v") or not version.is_valid(text):
        yield Cause(
            "FieldValueInvalid", f"{text!r} is not a valid version: expected for example v1.32.4", "spec.version"
        )


def _external_etcd(spec: Mapping[str, Any]) -> bool:
    return bool(_at(spec, "kubeadmConfigSpec", "clusterConfiguration", "etcd", "external"))


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _common(spec: Json, path: str, replicas: int | None) -> Iterator[Cause]:
    yield from _rollout(spec, path, replicas)
    yield from _certificates(spec, path)
    yield from _naming(spec, path)
    yield from _taints(spec, path)
    yield from _configuration(spec, path)
    yield from kubeadmconfig.validate(spec.get("kubeadmConfigSpec") or {}, f"{path}.kubeadmConfigSpec")


def _rollout(spec: Json, path: str, replicas: int | None) -> Iterator[Cause]:
    strategy = _at(spec, "rollout", "strategy") or {}
    if strategy and strategy.get("type") != "RollingUpdate":
        yield Cause("FieldValueNotSupported", "use RollingUpdate", f"{path}.rollout.strategy.type")
    surge = _at(strategy, "rollingUpdate", "maxSurge")
    where = f"{path}.rollout.strategy.rollingUpdate.maxSurge"
    if surge is None:
        return
    if str(surge) not in ("0", "1"):
        yield Cause(
            "FieldValueInvalid", f"{surge!r} is not possible: machines are replaced one at a time; use 1 or 0", where
        )
    elif str(surge) == "0" and replicas is not None and replicas < 3:
        text = (
            f"with {replicas} replicas no machine can be deleted before its replacement exists: use 1, or at "
            "least 3 replicas"
        )
        yield Cause("FieldValueInvalid", text, where)


def _certificates(spec: Json, path: str) -> Iterator[Cause]:
    configuration = _at(spec, "kubeadmConfigSpec", "clusterConfiguration") or {}
    days = configuration.get("certificateValidityPeriodDays")
    if not days:
        return
    most = configuration.get("caCertificateValidityPeriodDays") or _DEFAULT_CA_DAYS
    if days > most:
        where = f"{path}.kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays"
        text = f"certificates can't be valid longer than their CA: the maximum is {most} days"
        yield Cause("FieldValueInvalid", text, where)
    before = _at(spec, "rollout", "before", "certificatesExpiryDays")
    if before and before >= days:
        text = f"machines would be replaced all the time: certificates are valid for {days} days, use fewer"
        yield Cause("FieldValueInvalid", text, f"{path}.rollout.before.certificatesExpiryDays")


def _naming(spec: Json, path: str) -> Iterator[Cause]:
    template = _at(spec, "machineNaming", "template")
    if template:
        problem = naming.check(template, _NAMES)
        if problem:
            yield Cause("FieldValueInvalid", problem, f"{path}.machineNaming.template")


def _taints(spec: Json, path: str) -> Iterator[Cause]:
    for number, taint in enumerate(_at(spec, "machineTemplate", "spec", "taints") or ()):
        key = str(taint.get("key") or "")
        reserved = key.startswith(_RESERVED_TAINT_PREFIXES) and key != _OUT_OF_SERVICE
        if reserved or key in _RESERVED_TAINTS:
            where = f"{path}.machineTemplate.spec.taints[{number}].key"
            yield Cause("FieldValueInvalid", f"{key} is reserved for Kubernetes or Cluster API: use another key", where)


def _configuration(spec: Json, path: str) -> Iterator[Cause]:
    configuration = _at(spec, "kubeadmConfigSpec", "clusterConfiguration") or {}
    where = f"{path}.kubeadmConfigSpec.clusterConfiguration"
    etcd = configuration.get("etcd") or {}
    if etcd.get("local") and etcd.get("external"):
        yield Cause(
            "FieldValueForbidden", "etcd is either local or external: remove one of them", f"{where}.etcd.local"
        )
    tag = _at(configuration, "dns", "imageTag")
    if tag:
        yield from _dns_tag(str(tag), f"{where}.dns.imageTag")
    tag = _at(etcd, "local", "imageTag")
    if tag and not _TAG.fullmatch(str(tag)):
        yield Cause("FieldValueInvalid", f"{tag!r} is not a valid image tag", f"{where}.etcd.local.imageTag")


def _dns_tag(tag: str, where: str) -> Iterator[Cause]:
    if not _TAG.fullmatch(tag):
        yield Cause("FieldValueInvalid", f"{tag!r} is not a valid image tag", where)
        return
    try:
        numbers(tag)
    except AddonError as problem:
        yield Cause("FieldValueInvalid", str(problem), where)


# -- changes -----------------------------------------------------------------------------------------------------


def _changes(obj: Json, old: Json) -> Iterator[Cause]:
    spec, before = obj["spec"], old.get("spec") or {}
    yield from _version_change(spec, before)
    if _external_etcd(spec) != _external_etcd(before):
        where = "spec.kubeadmConfigSpec.clusterConfiguration.etcd"
        yield Cause("FieldValueForbidden", "a running cluster can't change between local and external etcd", where)
    for path in _FIXED:
        if _at(spec, "kubeadmConfigSpec", *path) != _at(before, "kubeadmConfigSpec", *path):
            text = "immutable: existing machines and certificates use it"
            yield Cause("FieldValueForbidden", text, ".".join(("spec.kubeadmConfigSpec", *path)))
    yield from _dns_change(obj, before)


def _version_change(spec: Json, before: Json) -> Iterator[Cause]:
    was, wanted = str(before.get("version") or ""), str(spec["version"])
    if not version.is_valid(was):
        return
    old, new = version.parse(was), version.parse(wanted)
    if old.major != new.major or new.minor > old.minor + 1:
        text = (
            f"can't upgrade from {was} to {wanted}: upgrade one minor version at a time, "
            f"v{old.major}.{old.minor + 1} is next"
        )
        yield Cause("FieldValueForbidden", text, "spec.version")
    elif new.minor < old.minor - 1:
        text = f"can't downgrade from {was} to {wanted}: the maximum is one minor version"
        yield Cause("FieldValueForbidden", text, "spec.version")


def _dns_change(obj: Json, before: Json) -> Iterator[Cause]:
    path = ("kubeadmConfigSpec", "clusterConfiguration", "dns", "imageTag")
    was, wanted = _at(before, *path), _at(obj["spec"], *path)
    if not was or not wanted or SKIP_COREDNS in (obj["metadata"].get("annotations") or {}):
        return
    try:
        back = numbers(str(wanted)) < numbers(str(was))
    except AddonError:
        return  # said already, or old
    if back:
        text = f"CoreDNS can't be downgraded from {was} to {wanted}: its configuration may be incompatible"
        yield Cause("FieldValueForbidden", text, ".".join(("spec", *path)))


def _paths(diff: Any, prefix: str = "") -> Iterator[str]:
    if not isinstance(diff, Mapping) or not diff:
        yield prefix
        return
    for name, value in diff.items():
        yield from _paths(value, f"{prefix}.{name}" if prefix and name else prefix or str(name))
