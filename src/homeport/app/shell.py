"""The environment of a shell in which the guides' kubectl, curl and helm commands reach a plane and its simulators.

DIR/env/CONTEXT.yaml   kubeconfig with a context for the plane and one for each simulator that is a cluster
DIR/env/ca.crt         the certificates that the system trusts, and those of the simulators
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from homeport.apiserver.auth.file import make_private_dir, write_private
from homeport.machinery import yaml
from homeport.sim.state import SimulatorState

PLANE = "homeport"
_FOLDER = "env"
_INTERNET = "sim/web/ca.crt"  # of the hosts that the simulated internet stands in for
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.DOTALL)
_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
# Programs that read both take the second first, so it has to follow the first if it is set.
_OTHER_SPELLINGS = {"HTTPS_PROXY": "https_proxy", "NO_PROXY": "no_proxy", "SSL_CERT_FILE": "CURL_CA_BUNDLE"}


class UnknownContext(ValueError):
    """The context that was asked for does not exist; the text names those that do."""


def prepare(
    data: Path,
    kubeconfig: Path,
    simulators: Sequence[SimulatorState],
    current: Mapping[str, str],
    context: str = PLANE,
) -> dict[str, str]:
    """Writes the files and gives the variables to export. `current`: the environment of the caller.

    Raises UnknownContext.
    """
    sources = {PLANE: kubeconfig, **{each.name: Path(each.kubeconfig) for each in simulators if each.kubeconfig}}
    if context not in sources:
        raise UnknownContext(f"unknown context {context!r}: expected {' or '.join(sources)}")
    if not simulators:
        return {"KUBECONFIG": str(kubeconfig)}
    folder = data / _FOLDER
    make_private_dir(folder)
    config, bundle = folder / f"{context}.yaml", folder / "ca.crt"
    files = {name: yaml.load(path.read_bytes(), str(path)) for name, path in sources.items()}
    write_private(config, yaml.dump(joined(files, context)).encode())
    files_of_authorities = [data / _INTERNET, *(Path(each.authority) for each in simulators if each.authority)]
    authorities = [each.read_bytes() for each in files_of_authorities if each.is_file()]
    write_private(bundle, trusted([system_bundle(current), *authorities]))
    found = {
        "KUBECONFIG": str(config),
        "HTTPS_PROXY": simulators[0].proxy,  # simulators share one network
        "NO_PROXY": without_proxy(current.get("NO_PROXY", ""), _host(files[PLANE])),
        "SSL_CERT_FILE": str(bundle),
    }
    return found | {other: found[name] for name, other in _OTHER_SPELLINGS.items() if current.get(other)}


def joined(files: Mapping[str, Any], current: str) -> dict[str, Any]:
    """One kubeconfig of several: the current context of each, under the name that the mapping gives it."""
    made: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    for name, file in files.items():
        context = _named(file, "contexts", file["current-context"])["context"]
        cluster = _named(file, "clusters", context["cluster"])["cluster"]
        user = _named(file, "users", context["user"])["user"]
        made["clusters"].append({"name": name, "cluster": cluster})
        made["users"].append({"name": name, "user": user})
        made["contexts"].append({"name": name, "context": {**context, "cluster": name, "user": name}})
    return made | {"current-context": current}


def _named(file: Any, section: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in file[section] if each["name"] == name)
    return found


def _host(file: Any) -> str:
    context = _named(file, "contexts", file["current-context"])["context"]
    server = _named(file, "clusters", context["cluster"])["cluster"]["server"]
    return urlsplit(server).hostname or ""


def trusted(bundles: Iterable[bytes]) -> bytes:
    """Each certificate once."""
    return b"".join(dict.fromkeys(each.rstrip() + b"\n" for bundle in bundles for each in _CERTIFICATE.findall(bundle)))


def system_bundle(current: Mapping[str, str]) -> bytes:
    """What programs trust without us. The shell may name a bundle already, perhaps ours of the last time."""
    named = [current.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().cafile, *_SYSTEM_BUNDLES]
    return next((Path(each).read_bytes() for each in named if each and Path(each).is_file()), b"")


def without_proxy(before: str, host: str) -> str:
    """Hosts that are reached directly. curl sends requests to loopback addresses to a proxy, too."""
    names = [*filter(None, before.split(",")), "127.0.0.1", "::1", "localhost", host]
    return ",".join(dict.fromkeys(filter(None, (each.strip() for each in names))))
