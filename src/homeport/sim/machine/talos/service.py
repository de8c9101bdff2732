"""The calls of the Talos API that the simulation answers, and who may make them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable

from homeport.machinery.protowire import field, nested, number_of, parse
from homeport.machinery.talos.certificate import encoded
from homeport.sim.machine import yaml
from homeport.sim.machine.etcdwire.grpc import UNIMPLEMENTED, Call, Status
from homeport.sim.machine.image import talos_version
from homeport.sim.machine.talos.apid import Roles
from homeport.sim.machine.talos.check import ConfigRefused, check_config
from homeport.sim.machine.talos.config import TalosConfig
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload.trust.authority import load_authority, now_of

INVALID, EXISTS, DENIED, PRECONDITION, UNAVAILABLE = 3, 6, 7, 9, 14
ADMIN, READERS = frozenset({"os:admin"}), frozenset({"os:admin", "os:operator", "os:reader"})
_SERVICE = "/machine.MachineService/"
_STAGED = 3
_MODES = {0: "reboot", 1: "auto", 2: "no-reboot", 3: "staged", 4: "try"}
_MAINTENANCE_MODES = ("reboot", "auto", "try")


def _data(request: bytes) -> tuple[bytes, str, bool]:
    """Configuration, mode and dry run of a request."""
    fields = parse(request)
    given = fields.get(1, [b""])[-1]
    mode = _MODES.get(number_of(fields, 4), "unknown")
    return given if isinstance(given, bytes) else b"", mode, bool(number_of(fields, 5))


def maintenance_calls(apply: Callable[[bytes], None]) -> Callable[[Roles], dict[str, Call]]:
    """Before a machine is configured: anybody may configure it, and do nothing else."""

    def apply_configuration(request: bytes) -> bytes:
        text, mode, dry = _data(request)
        if mode not in _MAINTENANCE_MODES:
            raise Status(UNIMPLEMENTED, f"apply configuration --mode='{mode}' is not supported in maintenance mode")
        _check(text)
        if not dry:
            apply(text)
        return nested(1, b"")

    def version(request: bytes) -> bytes:
        raise Status(DENIED, "not authorized")

    return lambda roles: {
        f"{_SERVICE}ApplyConfiguration": apply_configuration,
        f"{_SERVICE}Version": version,
    }


def _check(text: bytes) -> None:
    try:
        check_config(text)
    except ConfigRefused as refused:
        raise Status(INVALID, str(refused)) from refused


class MachineService:
    """Of a machine that is configured. `save` keeps a new configuration for the next start."""

    def __init__(
        self, machine: Machine, config: TalosConfig, bootstrap: Callable[[], bool], save: Callable[[bytes], None]
    ) -> None:
        self._machine = machine
        self._config = config
        self._start = bootstrap  # False: etcd has data already
        self._save = save

    def calls(self, roles: Roles) -> dict[str, Call]:
        own: dict[str, tuple[Call, frozenset[str]]] = {
            "ApplyConfiguration": (self._apply, ADMIN),
            "Bootstrap": (self._bootstrap, ADMIN),
            "EtcdMemberList": (self._members, READERS),
            "Hostname": (self._hostname, READERS),
            "Kubeconfig": (self._kubeconfig, ADMIN),
            "ServiceList": (self._services, READERS),
            "Version": (self._version, READERS),
        }
        return {f"{_SERVICE}{name}": call if roles & allowed else _denied for name, (call, allowed) in own.items()}

    def _bootstrap(self, request: bytes) -> bytes:
        if not self._config.control_plane:
            raise Status(PRECONDITION, "bootstrap can only be performed on a control plane node")
        if not self._start():
            raise Status(EXISTS, "etcd data directory is not empty")
        self._machine.console.say("[talos] bootstrap request received")
        return nested(1, b"")

    def _apply(self, request: bytes) -> bytes:
        text, mode, dry = _data(request)
        _check(text)
        if not dry:
            self._save(text)
            self._machine.console.say(f"[talos] apply config request: mode {mode}")
        details = "Staged configuration to be applied after the next reboot"
        return nested(1, field(3, _STAGED) + field(4, details))

    def _kubeconfig(self, request: bytes) -> bytes:
        if not self._config.control_plane:
            raise Status(UNIMPLEMENTED, "kubeconfig is only available on control plane nodes")
        packed = io.BytesIO()
        content = self._admin().encode()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            entry = tarfile.TarInfo("kubeconfig")
            entry.size, entry.mode = len(content), 0o600
            archive.addfile(entry, io.BytesIO(content))
        return field(2, packed.getvalue())

    def _admin(self) -> str:
        """A kubeconfig for a new client certificate, which needs the cluster's CA alone."""
        pair, facts = self._config.cluster_authority, self._config.facts
        authority = load_authority("cluster.ca", pair.certificate, pair.key, self._machine.clock)
        issued = authority.issuer.client("admin", ["system:masters"], now_of(self._machine.clock)())
        name = f"admin@{facts.name}"
        cluster = {"server": facts.server, "certificate-authority-data": encoded(pair.certificate)}
        user = {"client-certificate-data": encoded(issued.certificate), "client-key-data": encoded(issued.key)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": facts.name, "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": facts.name, "user": name, "namespace": "default"}}],
            "current-context": name,
        }
        return yaml.dump(document)

    def _version(self, request: bytes) -> bytes:
        version = nested(2, field(1, talos_version(self._machine.image)) + field(5, "linux") + field(6, "amd64"))
        platform = nested(3, field(1, self._machine.platform) + field(2, "cloud"))
        return nested(1, version + platform + nested(4, field(1, True)))

    def _hostname(self, request: bytes) -> bytes:
        return nested(1, field(2, self._machine.hostname))

    def _services(self, request: bytes) -> bytes:
        joined = self._machine.kubelet is not None
        names = {"apid": True, "kubelet": joined}
        if self._config.control_plane:
            names |= {"etcd": joined, "trustd": True}
        found = b""
        for name, running in sorted(names.items()):
            health = nested(4, field(1, not running) + field(2, running))
            found += nested(2, field(1, name) + field(2, "Running" if running else "Preparing") + health)
        return nested(1, found)

    def _members(self, request: bytes) -> bytes:
        if not self._config.control_plane:
            raise Status(UNIMPLEMENTED, "etcd is only available on control plane nodes")
        cluster = self._machine.cluster
        if cluster is None:
            raise Status(UNAVAILABLE, "etcd is not running")
        found = b""
        for member in cluster.etcd.members.values():
            urls = field(4, member.peer_url) + field(5, member.client_url)
            found += nested(3, field(2, member.id) + field(3, member.name) + urls + field(6, member.learner))
        return nested(1, found)


def _denied(request: bytes) -> bytes:
    raise Status(DENIED, "not authorized")
