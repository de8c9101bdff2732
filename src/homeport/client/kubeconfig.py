"""Kubeconfig files and service accounts in a pod, read into a Config.

Several files merge as kubectl merges them: the first file that sets a value, or names an entry, wins.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from homeport.client.config import Config, ConfigError, Impersonation
from homeport.client.credential import Certificate, CertificateFiles, Credential, Static, TokenFile, basic, bearer
from homeport.client.plugin import VERSIONS, Command, ExecPlugin
from homeport.machinery import yaml

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SECTIONS = {"clusters": "cluster", "users": "user", "contexts": "context"}


class Entry:
    """A part of a file: reads its fields by type, and its messages name the file and the field."""

    def __init__(self, file: Path, path: str, fields: Any) -> None:
        self.file = file
        self.path = path
        if not isinstance(fields, Mapping):
            raise ConfigError(f"{file}: {path or 'the file'} must be a mapping")
        self._fields = fields

    def fail(self, field: str, why: str) -> ConfigError:
        return ConfigError(f"{self.file}: {self.path}{'.' if self.path else ''}{field}: {why}")

    def raw(self, field: str) -> Any:
        return self._fields.get(field)

    def text(self, field: str) -> str:
        value = self.raw(field)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.fail(field, f"must be a string, not {type(value).__name__}")
        return value

    def flag(self, field: str) -> bool:
        value = self.raw(field)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.fail(field, "must be true or false")
        return value

    def texts(self, field: str) -> tuple[str, ...]:
        values = self.raw(field)
        if values is None:
            return ()
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise self.fail(field, "must be a list of strings")
        return tuple(values)

    def entries(self, field: str) -> list[Entry]:
        values = self.raw(field)
        if values is None:
            return []
        if not isinstance(values, list):
            raise self.fail(field, "must be a list")
        return [Entry(self.file, f"{self.path}{'.' if self.path else ''}{field}[{i}]", v) for i, v in enumerate(values)]

    def entry(self, field: str, path: str = "") -> Entry:
        value = self.raw(field)
        return Entry(self.file, path or f"{self.path}.{field}", {} if value is None else value)

    def file_path(self, field: str) -> Path | None:
        """Relative paths are relative to the file that names them."""
        text = self.text(field)
        return (self.file.parent / text) if text else None

    def content(self, field: str) -> bytes | None:
        """`<field>-data` (base64) wins over `<field>` (a file), as in kubectl."""
        data = self.text(f"{field}-data")
        if data:
            try:
                return base64.b64decode(data, validate=True)
            except (binascii.Error, ValueError):
                raise self.fail(f"{field}-data", "is not base64") from None
        path = self.file_path(field)
        if path is None:
            return None
        try:
            return path.read_bytes()
        except OSError as error:
            raise self.fail(field, f"can't read {path}: {error.strerror}") from None


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The merged files, still unresolved. `entries` is (section, name) > entry."""

    files: tuple[Path, ...]
    current: str
    entries: Mapping[tuple[str, str], Entry]

    def names(self, section: str) -> list[str]:
        return sorted(name for kind, name in self.entries if kind == section)

    def find(self, section: str, name: str) -> Entry:
        found = self.entries.get((section, name))
        if found is None:
            known = ", ".join(self.names(section)) or "none"
            raise ConfigError(f"{_names(self.files)}: no {_SECTIONS[section]} named {name!r} ({section}: {known})")
        return found


def _names(files: Iterable[Path]) -> str:
    return os.pathsep.join(str(file) for file in files)


def parse(text: str | bytes, file: Path) -> Entry:
    try:
        loaded = yaml.load(text, str(file))
    except yaml.YamlError as error:
        raise ConfigError(str(error)) from None  # the place and the problem; what stands there may be a key
    entry = Entry(file, "", {} if loaded is None else loaded)
    if entry.text("kind") not in ("", "Config"):
        raise entry.fail("kind", f"is {entry.text('kind')!r}, a kubeconfig has Config")
    return entry


def merge(files: Sequence[Entry]) -> Kubeconfig:
    current = ""
    entries: dict[tuple[str, str], Entry] = {}
    for file in files:
        current = current or file.text("current-context")
        for section, field in _SECTIONS.items():
            for item in file.entries(section):
                name = item.text("name")
                if not name:
                    raise item.fail("name", "is missing")
                entries.setdefault((section, name), item.entry(field, f"{section}[{name}].{field}"))
    return Kubeconfig(tuple(file.file for file in files), current, entries)


def read(path: Path | None = None, *, env: Mapping[str, str] = os.environ) -> Kubeconfig | None:
    """`path` must exist. Without it: the files of $KUBECONFIG, else ~/.kube/config; None if there are none."""
    if path is not None:
        candidates = [path]
    elif env.get("KUBECONFIG"):
        candidates = [Path(part) for part in env["KUBECONFIG"].split(os.pathsep) if part]
    else:
        candidates = [Path(env.get("HOME") or Path.home()) / ".kube" / "config"]
    loaded = []
    for file in candidates:
        try:
            loaded.append(parse(file.read_bytes(), file))
        except FileNotFoundError:
            if path is not None:
                raise ConfigError(f"{file}: no such file") from None
        except OSError as error:
            raise ConfigError(f"{file}: can't be read: {error.strerror}") from None
    return merge(loaded) if loaded else None


def load(path: Path | None = None, *, context: str = "", env: Mapping[str, str] = os.environ) -> Config:
    """The Config of a context (the current one if none is named); in a pod without kubeconfig, the pod's own."""
    kubeconfig = read(path, env=env)
    if kubeconfig is None:
        if env.get("KUBERNETES_SERVICE_HOST") and not context:
            return in_cluster(env=env)
        where = env.get("KUBECONFIG") or "~/.kube/config"
        raise ConfigError(f"{where} does not exist: 'homeport up' writes one, or set KUBECONFIG to another file")
    return resolve(kubeconfig, context)


def resolve(kubeconfig: Kubeconfig, context: str = "") -> Config:
    name = context or kubeconfig.current
    if not name:
        known = ", ".join(kubeconfig.names("contexts")) or "none"
        raise ConfigError(f"{_names(kubeconfig.files)}: current-context is not set (contexts: {known})")
    chosen = kubeconfig.find("contexts", name)
    if not chosen.text("cluster"):
        raise chosen.fail("cluster", "is missing")
    cluster = kubeconfig.find("clusters", chosen.text("cluster"))
    user_name = chosen.text("user")
    user = kubeconfig.find("users", user_name) if user_name else Entry(chosen.file, chosen.path, {})
    return _config(cluster, user, chosen.text("namespace") or "default")


def _config(cluster: Entry, user: Entry, namespace: str) -> Config:
    server = cluster.text("server")
    if not server:
        raise cluster.fail("server", "is missing")
    ca = cluster.content("certificate-authority")
    insecure = cluster.flag("insecure-skip-tls-verify")
    if insecure and ca is not None:
        raise cluster.fail("insecure-skip-tls-verify", "excludes certificate-authority: remove one of them")
    proxy = cluster.text("proxy-url")
    if proxy and not proxy.startswith(("http://", "https://")):
        raise cluster.fail("proxy-url", "must start with http:// or https:// (socks5 is not supported)")
    if not server.startswith(("https://", "http://")):
        raise cluster.fail("server", "must start with https:// or http://")
    return Config(
        server=server.rstrip("/"),
        credential=_credential(cluster, user),
        ca=ca,
        insecure=insecure,
        server_name=cluster.text("tls-server-name"),
        proxy=proxy,
        namespace=namespace,
        impersonate=_impersonation(user),
    )


def _impersonation(user: Entry) -> Impersonation:
    extra = user.entry("as-user-extra")
    return Impersonation(
        user=user.text("as"),
        uid=user.text("as-uid"),
        groups=user.texts("as-groups"),
        extra=tuple((name, extra.texts(name)) for name in user.raw("as-user-extra") or ()),
    )


def _credential(cluster: Entry, user: Entry) -> Credential:
    made = _bare_credential(cluster, user)
    files = [user.file_path(field) for field in ("client-certificate", "client-key")]
    inline = user.text("client-certificate-data") or user.text("client-key-data")
    if inline or files[0] is None or files[1] is None or isinstance(made, ExecPlugin):
        return made
    return CertificateFiles(made, files[0], files[1])


def _bare_credential(cluster: Entry, user: Entry) -> Credential:
    cert = _certificate(user)
    if user.raw("auth-provider") is not None:
        raise user.fail("auth-provider", "is not supported: use an exec plugin")
    token_file = user.file_path("tokenFile")
    if user.text("token") and token_file is None:
        return bearer(user.text("token"), cert)
    if token_file is not None:
        return TokenFile(token_file, cert)
    if user.text("username") or user.text("password"):
        return basic(user.text("username"), user.text("password"), cert)
    if user.raw("exec") is not None:
        return ExecPlugin(_command(cluster, user), cert)
    return Static("", cert)


def _certificate(user: Entry) -> Certificate | None:
    cert, key = user.content("client-certificate"), user.content("client-key")
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        missing = "client-certificate" if cert is None else "client-key"
        raise user.fail(missing, "is missing: a client certificate needs both certificate and key")
    return Certificate(cert, key)


def _command(cluster: Entry, user: Entry) -> Command:
    spec = user.entry("exec")
    version = spec.text("apiVersion")
    if version not in VERSIONS:
        raise spec.fail("apiVersion", f"is {version!r}, supported: {', '.join(VERSIONS)}")
    command = spec.text("command")
    if not command:
        raise spec.fail("command", "is missing")
    if os.sep in command and not os.path.isabs(command):
        command = str(spec.file.parent / command)
    mode = spec.text("interactiveMode") or "IfAvailable"
    if mode == "Always":
        raise spec.fail("interactiveMode", "is Always, but Homeport runs plugins without a terminal")
    if mode not in ("Never", "IfAvailable"):
        raise spec.fail("interactiveMode", "must be Never, IfAvailable or Always")
    env = []
    for item in spec.entries("env"):
        if not item.text("name"):
            raise item.fail("name", "is missing")
        env.append((item.text("name"), item.text("value")))
    return Command(
        where=f"{spec.file}: {spec.path}",
        api_version=version,
        command=command,
        args=spec.texts("args"),
        env=tuple(env),
        install_hint=spec.text("installHint"),
        cluster=_cluster_info(cluster) if spec.flag("provideClusterInfo") else None,
    )


def _cluster_info(cluster: Entry) -> dict[str, Any]:
    ca = cluster.content("certificate-authority")
    info: dict[str, Any] = {"server": cluster.text("server")}
    if cluster.text("tls-server-name"):
        info["tls-server-name"] = cluster.text("tls-server-name")
    if cluster.flag("insecure-skip-tls-verify"):
        info["insecure-skip-tls-verify"] = True
    if ca is not None:
        info["certificate-authority-data"] = base64.b64encode(ca).decode()
    if cluster.text("proxy-url"):
        info["proxy-url"] = cluster.text("proxy-url")
    for extension in cluster.entries("extensions"):
        if extension.text("name") == "client.authentication.k8s.io/exec":
            info["config"] = extension.raw("extension")
    return info


def is_in_cluster(env: Mapping[str, str] = os.environ) -> bool:
    """Whether we run in a Pod with a service account."""
    return bool(env.get("KUBERNETES_SERVICE_HOST")) and (_account(env) / "token").is_file()


def _account(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOMEPORT_SERVICE_ACCOUNT") or SERVICE_ACCOUNT)


def in_cluster(*, root: Path | None = None, env: Mapping[str, str] = os.environ) -> Config:
    """The service account of the pod we run in. The kubelet renews its files, which are read again."""
    root = root or _account(env)
    found = cluster_of_pod(root=root, env=env)
    token, namespace = root / "token", root / "namespace"
    if not token.is_file():
        raise ConfigError(f"{token}: no such file; is automountServiceAccountToken off for this pod?")
    return replace(
        found,
        credential=TokenFile(token),
        namespace=(namespace.read_text().strip() if namespace.is_file() else "") or "default",
    )


def cluster_of_pod(*, root: Path | None = None, env: Mapping[str, str] = os.environ) -> Config:
    """The API server of the pod we run in, without any credential."""
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConfigError("not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    ca = (root or _account(env)) / "ca.crt"
    if not ca.is_file():
        raise ConfigError(f"{ca}: no such file; is automountServiceAccountToken off for this pod?")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Config(server=server, ca=ca.read_bytes(), ca_file=ca)
