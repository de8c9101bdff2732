"""The fields of a v1alpha1 machine configuration. Talos refuses a document with any other."""

from __future__ import annotations

from typing import Any, Final

# A field's value is None for anything, or the fields of the object, or of each object in the list; "*" is any name.
Fields = dict[str, Any]


def _named(names: str, **more: Any) -> Fields:
    return {**dict.fromkeys(names.split()), **more}


_PAIR: Final = _named("crt key")
_VIP: Final = _named("ip", equinixMetal=_named("apiToken"), hcloud=_named("apiToken"))
_ROUTES: Final = _named("gateway metric mtu network source")
_DHCP: Final = _named("duidv6 ipv4 ipv6 routeMetric")
_SELECTOR: Final = _named("busPath driver hardwareAddr pciID permanentAddr physical")
_MOUNTS: Final = _named("hostPath mountPath readonly")

_BOND: Final = _named(
    "adActorSysPrio adActorSystem adSelect adUserPortKey allSlavesActive arpAllTargets arpIPTarget arpInterval "
    "arpValidate downdelay failOverMac interfaces lacpRate lpInterval miimon minLinks mode numPeerNotif "
    "packetsPerSlave peerNotifyDelay primary primaryReselect resendIgmp tlbDynamicLb updelay useCarrier "
    "xmitHashPolicy",
    deviceSelectors=_SELECTOR,
)
_WIREGUARD: Final = _named(
    "firewallMark listenPort privateKey",
    peers=_named("allowedIPs endpoint persistentKeepaliveInterval publicKey"),
)
_DEVICE: Final = _named(
    "addresses cidr dhcp dummy ignore interface mtu",
    bond=_BOND,
    bridge=_named("interfaces", stp=_named("enabled"), vlan=_named("vlanFiltering")),
    bridgePort=_named("master"),
    deviceSelector=_SELECTOR,
    dhcpOptions=_DHCP,
    routes=_ROUTES,
    vip=_VIP,
    vlans=_named("addresses cidr dhcp mtu vlanId", dhcpOptions=_DHCP, routes=_ROUTES, vip=_VIP),
    wireguard=_WIREGUARD,
)
_NETWORK: Final = _named(
    "disableSearchDomain hostname nameservers searchDomains",
    extraHostEntries=_named("aliases ip"),
    interfaces=_DEVICE,
    kubespan=_named(
        "advertiseKubernetesNetworks allowDownPeerBypass enabled harvestExtraEndpoints mtu", filters=_named("endpoints")
    ),
)
_INSTALL: Final = _named(
    "disk extraKernelArgs grubUseUKICmdline image legacyBIOSSupport wipe",
    diskSelector=_named("busPath modalias model name serial size type uuid wwid"),
    extensions=_named("image"),
)
_ENCRYPTION: Final = _named(
    "blockSize cipher keySize options provider",
    keys=_named(
        "slot",
        kms=_named("endpoint"),
        nodeID=_named(""),
        static=_named("passphrase"),
        tpm=_named("checkSecurebootStatusOnEnroll options"),
    ),
)
_REGISTRIES: Final[Fields] = {
    "mirrors": {"*": _named("endpoints overridePath skipFallback")},
    "config": {
        "*": {
            "auth": _named("auth identityToken password username"),
            "tls": _named("ca insecureSkipVerify", clientIdentity=_PAIR),
        }
    },
}
_FEATURES: Final = _named(
    "apidCheckExtKeyUsage diskQuotaSupport nodeAddressSortAlgorithm rbac stableHostname",
    hostDNS=_named("enabled forwardKubeDNSToHost resolveMemberNames"),
    imageCache=_named("localEnabled"),
    kubePrism=_named("enabled port"),
    kubernetesTalosAPIAccess=_named("allowedKubernetesNamespaces allowedRoles enabled"),
)
_KUBELET: Final = _named(
    "clusterDNS credentialProviderConfig defaultRuntimeSeccompProfileEnabled disableManifestsDirectory extraArgs "
    "extraConfig image registerWithFQDN skipNodeRegistration",
    extraMounts=_named("destination gidMappings options source type uidMappings"),
    nodeIP=_named("validSubnets"),
)
MACHINE: Final = _named(
    "baseRuntimeSpecOverrides certSANs env nodeAnnotations nodeLabels nodeTaints pods sysctls sysfs token type",
    acceptedCAs=_named("crt"),
    ca=_PAIR,
    controlPlane={"controllerManager": _named("disabled"), "scheduler": _named("disabled")},
    disks=_named("device", partitions=_named("mountpoint size")),
    features=_FEATURES,
    files=_named("content op path permissions"),
    install=_INSTALL,
    kernel={"modules": _named("name parameters")},
    kubelet=_KUBELET,
    logging={"destinations": _named("endpoint extraTags format")},
    network=_NETWORK,
    registries=_REGISTRIES,
    seccompProfiles=_named("name value"),
    systemDiskEncryption={"ephemeral": _ENCRYPTION, "state": _ENCRYPTION},
    time=_named("bootTimeout disabled servers"),
    udev=_named("rules"),
)
_COMPONENT: Final = _named("env extraArgs image", extraVolumes=_MOUNTS, resources=_named("limits requests"))
CLUSTER: Final = _named(
    "aescbcEncryptionSecret allowSchedulingOnControlPlanes allowSchedulingOnMasters clusterName extraManifestHeaders "
    "extraManifests id secret secretboxEncryptionSecret token",
    acceptedCAs=_named("crt"),
    adminKubeconfig=_named("certLifetime"),
    aggregatorCA=_PAIR,
    apiServer={
        **_COMPONENT,
        **_named(
            "auditPolicy certSANs disablePodSecurityPolicy",
            admissionControl=_named("configuration name"),
            authorizationConfig=_named("name type webhook"),
        ),
    },
    ca=_PAIR,
    controlPlane=_named("endpoint localAPIServerPort"),
    controllerManager=_COMPONENT,
    coreDNS=_named("disabled image"),
    discovery=_named("enabled", registries={"kubernetes": _named("disabled"), "service": _named("disabled endpoint")}),
    etcd=_named("advertisedSubnets extraArgs image listenSubnets subnet", ca=_PAIR),
    externalCloudProvider=_named("enabled manifests"),
    inlineManifests=_named("contents name"),
    network=_named("dnsDomain podSubnets serviceSubnets", cni=_named("name urls", flannel=_named("extraArgs"))),
    proxy=_named("disabled extraArgs image mode"),
    scheduler={**_COMPONENT, "config": None},
    serviceAccount=_named("key"),
)
CONFIG: Final = _named("debug persist version", machine=MACHINE, cluster=CLUSTER)


def unknown(value: Any, fields: Fields | None, path: str = "") -> list[str]:
    """Paths of fields that are not known."""
    if fields is None or value is None:
        return []
    if isinstance(value, list):
        return [found for number, each in enumerate(value) for found in unknown(each, fields, f"{path}[{number}]")]
    if not isinstance(value, dict):
        return []
    found = []
    for name, below in value.items():
        where = f"{path}.{name}".lstrip(".")
        if "*" in fields:
            found += unknown(below, fields["*"], where)
        elif name not in fields:
            found.append(where)
        else:
            found += unknown(below, fields[name], where)
    return found
