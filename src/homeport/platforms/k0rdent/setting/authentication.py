"""ClusterAuthentication as the configuration file that kube-apiserver reads. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from homeport.api.k0rdent.v1beta1 import ClusterAuthentication
from homeport.client.protocol import Key
from homeport.machinery import yaml
from homeport.platforms.k0rdent.name import SYSTEM_NAMESPACE

_ROOT = "spec.authenticationConfiguration"
_GROUP = "apiserver.config.k8s.io"
_FIRST = (1, 30)  # the first version of Kubernetes that reads such a file without a feature gate
_STABLE = (1, 34)  # the first that has the version v1 of the file


def authority_key(obj: ClusterAuthentication) -> Key | None:
    """The Secret with the CA certificates of issuers."""
    ref = obj.spec.ca_secret
    return None if ref is None else Key(ref.namespace or obj.metadata.namespace, ref.name)


def authentication_error(obj: ClusterAuthentication) -> str:
    """What kube-apiserver would refuse; '' if it can be used."""
    return "; ".join(_faults(obj))


def _faults(obj: ClusterAuthentication) -> Iterator[str]:
    ref, own = obj.spec.ca_secret, obj.metadata.namespace
    if ref is not None and ref.namespace not in ("", own) and own != SYSTEM_NAMESPACE:
        yield (
            f'spec.caSecret.namespace: "{ref.namespace}": only a ClusterAuthentication in {SYSTEM_NAMESPACE} may use '
            "Secrets of other namespaces"
        )
    if ref is not None and not ref.name:
        yield "spec.caSecret.name is required"
    given = obj.spec.authentication_configuration or {}
    if given.get("anonymous") is not None:
        yield (
            f"{_ROOT}.anonymous: k0s sets --anonymous-auth itself, and kube-apiserver accepts only one of the two: "
            "remove the field"
        )
    listed = given.get("jwt")
    if not isinstance(listed, list) or not listed:
        yield f"{_ROOT}.jwt: at least one issuer is required"
        return
    for number, each in enumerate(listed):
        yield from _issuer_faults(f"{_ROOT}.jwt[{number}]", each if isinstance(each, Mapping) else {})
    urls = [str(_part(each, "issuer").get("url")) for each in listed]
    if len(urls) != len(set(urls)):
        yield f"{_ROOT}.jwt: two issuers have the same url"


def _issuer_faults(path: str, given: Mapping[str, Any]) -> Iterator[str]:
    issuer = _part(given, "issuer")
    if not str(issuer.get("url") or "").startswith("https://"):
        yield f"{path}.issuer.url: expected a URL that begins with https://"
    if not issuer.get("audiences"):
        yield f"{path}.issuer.audiences: at least one is required"
    username = _part(_part(given, "claimMappings"), "username")
    if bool(username.get("claim")) == bool(username.get("expression")):
        yield f"{path}.claimMappings.username: set either claim (with prefix) or expression"
    elif username.get("claim") and "prefix" not in username:
        yield f'{path}.claimMappings.username.prefix is required with claim; "" adds nothing'


def version_error(line: tuple[int, int]) -> str:
    """`line`: major and minor version of Kubernetes."""
    if line >= _FIRST:
        return ""
    return f"Kubernetes v{line[0]}.{line[1]} does not read authentication files: v1.30 or later is required"


def render_authentication(obj: ClusterAuthentication, authority: str, line: tuple[int, int]) -> str:
    """`authority`: CA certificates (PEM) for issuers that have none."""
    made: dict[str, Any] = copy.deepcopy(obj.spec.authentication_configuration or {})
    for each in made.get("jwt") or ():
        if authority and not each["issuer"].get("certificateAuthority"):
            each["issuer"]["certificateAuthority"] = authority
    version = "v1" if line >= _STABLE else "v1beta1"
    return yaml.dump({**made, "apiVersion": f"{_GROUP}/{version}", "kind": "AuthenticationConfiguration"})


def _part(obj: Any, name: str) -> Mapping[str, Any]:
    found = obj.get(name) if isinstance(obj, Mapping) else None
    return found if isinstance(found, Mapping) else {}
