"""Security contexts of Pods and containers, and what the operating system of a Pod allows in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from homeport.apiserver.kinds.check import (
    MAX_INT32,
    Struct,
    dns_subdomain,
    duplicate,
    forbidden,
    invalid,
    named,
    required,
    too_long,
    unsupported,
    within,
)
from homeport.apiserver.kinds.pod.path import descending
from homeport.apiserver.kinds.pod.spec import CONTAINERS
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = f"^({_SEGMENT}[\\./])*{_SEGMENT}$"
_SYSCTL_LIMIT = 253
_NETWORK_SYSCTLS = ("net.",)
_IPC_SYSCTLS = ("kernel.sem", "kernel.shm", "kernel.msg", "fs.mqueue.")
_FIELDS = (
    "capabilities", "privileged", "seLinuxOptions", "windowsOptions", "runAsUser", "runAsGroup", "runAsNonRoot",
    "readOnlyRootFilesystem", "allowPrivilegeEscalation", "procMount", "seccompProfile", "appArmorProfile",
)  # fmt: skip
_NOT_ON_WINDOWS = "cannot be set for a windows pod"
_NOT_ON_LINUX = "windows options cannot be set for a linux pod"
_POD_LINUX = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser",
    "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy",
)  # fmt: skip
_CONTAINER_LINUX = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip
_GMSA_LIMIT_KIB = 64
_DOMAIN_LIMIT, _USER_LIMIT = 256, 104


# -- Pods ------------------------------------------------------------------------------------------------------


def pod_context(field: str, context: Json, spec: Json) -> Iterator[Cause]:
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from _identity(f"{field}.{name}", context.get(name))
    for i, group in enumerate(context.get("supplementalGroups") or ()):
        yield from _identity(f"{field}.supplementalGroups[{i}]", group)
    yield from _sysctls(f"{field}.sysctls", context.get("sysctls") or [], spec)
    yield from _choice(field, context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"))
    yield from seccomp(f"{field}.seccompProfile", context.get("seccompProfile"))
    yield from _windows(f"{field}.windowsOptions", context.get("windowsOptions"))
    yield from _app_armor(f"{field}.appArmorProfile", context.get("appArmorProfile"))
    yield from _choice(field, context, "supplementalGroupsPolicy", ("Merge", "Strict"))
    yield from _choice(field, context, "seLinuxChangePolicy", ("MountOption", "Recursive"))


def _choice(field: str, context: Json, name: str, choices: tuple[str, ...]) -> Iterator[Cause]:
    if context.get(name) is not None and context[name] not in choices:
        yield unsupported(f"{field}.{name}", context[name], choices)


def _identity(field: str, value: int | None) -> Iterator[Cause]:
    if value is not None:
        yield from within(field, value, 0, MAX_INT32)


def _sysctls(field: str, found: list[Json], spec: Json) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, sysctl in enumerate(found):
        subfield, name = f"{field}[{i}].name", sysctl.get("name", "")
        if not name:
            yield required(subfield)
        elif len(name) > _SYSCTL_LIMIT or not re.match(_SYSCTL.replace("$", r"\Z"), name):
            yield invalid(subfield, name, f"must have at most {_SYSCTL_LIMIT} characters and match regex {_SYSCTL}")
        elif name in seen:
            yield duplicate(subfield, name)
        dotted = _dotted(name)
        if spec.get("hostNetwork") and dotted.startswith(_NETWORK_SYSCTLS):
            yield invalid(subfield, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and dotted.startswith(_IPC_SYSCTLS):
            yield invalid(subfield, name, "may not be specified when 'hostIPC' is true")
        seen.add(name)


def _dotted(name: str) -> str:
    """The form with dots, whichever separator comes first: in the form with slashes a dot stands for a slash."""
    found = re.search("[./]", name)
    return name.translate(str.maketrans("./", "/.")) if found and found[0] == "/" else name


# -- containers ------------------------------------------------------------------------------------------------


def container_context(field: str, context: Json, *, host_users: bool) -> Iterator[Cause]:
    for name in ("runAsUser", "runAsGroup"):
        yield from _identity(f"{field}.{name}", context.get(name))
    mount = context.get("procMount")
    if mount is not None:
        if mount not in ("Default", "Unmasked"):
            yield unsupported(f"{field}.procMount", mount, ("Default", "Unmasked"))
        if host_users and mount == "Unmasked":
            yield invalid(f"{field}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    yield from seccomp(f"{field}.seccompProfile", context.get("seccompProfile"))
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield invalid(field, _shown(context), detail)
        for capability in (context.get("capabilities") or {}).get("add") or ():
            if capability == "CAP_SYS_ADMIN":
                detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
                yield invalid(field, _shown(context), detail)
    yield from _windows(f"{field}.windowsOptions", context.get("windowsOptions"))
    yield from _app_armor(f"{field}.appArmorProfile", context.get("appArmorProfile"))


def _shown(context: Json) -> Struct:
    found = Struct({_capital(name): context.get(name) for name in _FIELDS})
    if (capabilities := context.get("capabilities")) is not None:
        found["Capabilities"] = Struct(Add=capabilities.get("add"), Drop=capabilities.get("drop"))
    for name in ("seccompProfile", "appArmorProfile"):
        if (profile := context.get(name)) is not None:
            found[_capital(name)] = _profile(profile)
    return found


def _capital(name: str) -> str:
    return {"seLinuxOptions": "SELinuxOptions"}.get(name, name[:1].upper() + name[1:])


def _profile(profile: Json) -> Struct:
    return Struct(Type=profile.get("type", ""), LocalhostProfile=profile.get("localhostProfile"))


def seccomp(field: str, profile: Json | None) -> Iterator[Cause]:
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        yield required(f"{field}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        yield unsupported(f"{field}.type", kind, _PROFILES)
    if kind != "Localhost":
        if local is not None:
            detail = "can only be set when seccomp type is Localhost"
            yield invalid(f"{field}.localhostProfile", _profile(profile), detail)
    elif local is None:
        yield required(f"{field}.localhostProfile", "must be set when seccomp type is Localhost")
    else:
        yield from descending(f"{field}.localhostProfile", local)


def _app_armor(field: str, profile: Json | None) -> Iterator[Cause]:
    if profile is None:
        return
    kind, local, subfield = profile.get("type", ""), profile.get("localhostProfile"), f"{field}.localhostProfile"
    if kind == "Localhost":
        if local is None or not local:
            yield required(subfield, "must be set when AppArmor type is Localhost")
        elif local != local.strip():
            yield invalid(subfield, local, "must not be padded with whitespace")
        if len(local or "") > 4095:
            yield too_long(subfield, 4095)
    elif kind in _PROFILES:
        if local is not None:
            yield invalid(subfield, local, "can only be set when AppArmor type is Localhost")
    elif not kind:
        yield required(f"{field}.type", "type is required when appArmorProfile is set")
    else:
        yield unsupported(f"{field}.type", kind, _PROFILES)


# -- Windows ---------------------------------------------------------------------------------------------------


def _windows(field: str, options: Json | None) -> Iterator[Cause]:
    if options is None:
        return
    if options.get("gmsaCredentialSpecName") is not None:
        yield from named(f"{field}.gmsaCredentialSpecName", options["gmsaCredentialSpecName"], dns_subdomain)
    credential = options.get("gmsaCredentialSpec")
    if credential == "":
        yield invalid(f"{field}.gmsaCredentialSpec", "", "gmsaCredentialSpec cannot be an empty string")
    elif len(credential or "") > _GMSA_LIMIT_KIB * 1024:
        detail = f"gmsaCredentialSpec size must be under {_GMSA_LIMIT_KIB} KiB"
        yield invalid(f"{field}.gmsaCredentialSpec", credential, detail)
    user = options.get("runAsUserName")
    if user is not None:
        yield from (invalid(f"{field}.runAsUserName", user, wrong) for wrong in _user_errors(user))


def _user_errors(name: str) -> Iterator[str]:
    domain, backslash, user = name.partition("\\")
    if not backslash:
        domain, user = "", name
    if not name:
        yield "runAsUserName cannot be an empty string"
    elif re.search(r"[\x00-\x1f\x7f]", name):
        yield "runAsUserName cannot contain control characters"
    elif "\\" in user:
        yield "runAsUserName cannot contain more than one backslash"
    else:
        if len(domain) >= _DOMAIN_LIMIT:
            yield f"runAsUserName's Domain length must be under {_DOMAIN_LIMIT} characters"
        netbios = re.fullmatch(r'[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}', domain)
        dns = re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", domain, re.I)
        if backslash and not (netbios or dns):
            yield "runAsUserName's Domain doesn't match the NetBios nor the DNS format"
        if not user:
            yield "runAsUserName's User cannot be empty"
        elif len(user) > _USER_LIMIT:
            yield f"runAsUserName's User length must not be longer than {_USER_LIMIT} characters"
        if re.fullmatch(r"[. ]+", user):
            yield "runAsUserName's User cannot contain only periods or spaces"
        if re.search(r'["/\\:;|=,+*?<>@\[\]]', user):
            yield "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"


def host_process(field: str, spec: Json) -> Iterator[Cause]:
    """Containers of Windows that are processes of their host: all of a Pod's or none, and on the host's network."""
    of_pod = _host_process(spec.get("securityContext"))
    count = marked = 0
    for subfield, container in _every(field, spec):
        own = _host_process(container.get("securityContext"))
        count += 1
        if of_pod is not None and own is not None and of_pod != own:
            detail = f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}"
            yield invalid(f"{subfield}.securityContext.windowsOptions.hostProcess", own, detail)
        marked += bool(of_pod if own is None else own)
    if marked and marked != count:
        detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield invalid(field, "", detail)
    if marked and not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid(f"{field}.hostNetwork", False, detail)


def _host_process(context: Json | None) -> bool | None:
    found: bool | None = ((context or {}).get("windowsOptions") or {}).get("hostProcess")
    return found


def _every(field: str, spec: Json) -> Iterator[tuple[str, Json]]:
    for part in ("initContainers", *(name for name in CONTAINERS if name != "initContainers")):
        for i, container in enumerate(spec.get(part) or ()):
            yield f"{field}.{part}[{i}]", container


def operating_system(field: str, spec: Json) -> Iterator[Cause]:
    found = spec.get("os")
    if found is None:
        return
    name = found.get("name", "")
    if not name:
        yield required(f"{field}.os.name")
    elif name == "linux":
        yield from _linux(field, spec)
    elif name == "windows":
        yield from _no_linux(field, spec)
    else:
        yield unsupported(f"{field}.os", name, ("linux", "windows"))


def _linux(field: str, spec: Json) -> Iterator[Cause]:
    contexts: list[tuple[str, Any]] = [(field, spec), *_every(field, spec)]
    for subfield, holder in contexts:
        if (holder.get("securityContext") or {}).get("windowsOptions") is not None:
            yield forbidden(f"{subfield}.securityContext.windowsOptions", _NOT_ON_LINUX)


def _no_linux(field: str, spec: Json) -> Iterator[Cause]:
    context = spec.get("securityContext") or {}
    for name in _POD_LINUX:
        if context.get(name) is not None:
            yield forbidden(f"{field}.securityContext.{name}", _NOT_ON_WINDOWS)
    if spec.get("hostUsers") is not None:
        yield forbidden(f"{field}.hostUsers", _NOT_ON_WINDOWS)
    for name in ("hostPID", "hostIPC"):
        if spec.get(name):
            yield forbidden(f"{field}.{name}", _NOT_ON_WINDOWS)
    if spec.get("shareProcessNamespace") is not None:
        yield forbidden(f"{field}.shareProcessNamespace", _NOT_ON_WINDOWS)
    for subfield, container in _every(field, spec):
        own = container.get("securityContext") or {}
        for name in _CONTAINER_LINUX:
            if own.get(name) is not None:
                yield forbidden(f"{subfield}.securityContext.{name}", _NOT_ON_WINDOWS)


# -- namespaces of the host ------------------------------------------------------------------------------------


def host_namespaces(field: str, spec: Json) -> Iterator[Cause]:
    """A Pod with users of its own shares no other namespace with its node."""
    if spec.get("hostUsers") is not False:
        return
    for name, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(name):
            yield forbidden(f"{field}.{shown}", "when `hostUsers` is false")
    for subfield, container in _every(field, spec):
        if container.get("volumeDevices"):
            yield forbidden(f"{subfield}.volumeDevices", "when `hostUsers` is false")


def annotated_seccomp(field: str, annotations: Json, spec: Json) -> Iterator[Cause]:
    """Profiles were annotations once: where both are given they have to agree."""
    pod = (spec.get("securityContext") or {}).get("seccompProfile")
    given = annotations.get("seccomp.security.alpha.kubernetes.io/pod")
    yield from _same_profile(f"{field}.securityContext.seccompProfile", given, pod)
    for subfield, container in _every(field, spec):
        key = f"container.seccomp.security.alpha.kubernetes.io/{container.get('name', '')}"
        profile = (container.get("securityContext") or {}).get("seccompProfile")
        yield from _same_profile(f"{subfield}.securityContext.seccompProfile", annotations.get(key), profile)


_ANNOTATED = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default", "docker/default")}


def _same_profile(field: str, annotation: str | None, profile: Json | None) -> Iterator[Cause]:
    if annotation is None or profile is None:
        return
    kind = profile.get("type", "")
    if kind in _ANNOTATED and annotation not in _ANNOTATED[kind]:
        yield forbidden(f"{field}.type", "seccomp type in annotation and field must match")
    elif kind == "Localhost":
        if not annotation.startswith("localhost/"):
            yield forbidden(f"{field}.type", "seccomp type in annotation and field must match")
        elif annotation.removeprefix("localhost/") != profile.get("localhostProfile"):
            yield forbidden(f"{field}.localhostProfile", "seccomp profile in annotation and field must match")
