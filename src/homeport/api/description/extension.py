"""Fields of runtime extensions, and of clusterctl's inventory."""

from __future__ import annotations

from collections.abc import Mapping

FIELDS: Mapping[str, str] = {
    "ExtensionConfig.spec": "How the extension is reached, and for which namespaces it is called.",
    "ExtensionConfig.status": "Handlers that the extension registered, and conditions.",
    "ExtensionConfigSpec.clientConfig": "How the extension is reached: either a URL or a Service of this cluster.",
    "ExtensionConfigSpec.namespaceSelector": "Namespaces, by label, for whose objects the extension is called. "
    "Default: all namespaces.",
    "ExtensionConfigSpec.settings": "Settings to send with each call to the extension, as a map of strings.",
    "ClientConfig.caBundle": "CA certificates, PEM in base64, that the certificate of the extension is checked with.",
    "ClientConfig.service": "Service of this cluster that the extension runs behind. Set either this or url.",
    "ClientConfig.url": "URL of the extension, for example https://extension.example.com:8443. Set either this or service.",
    "ServiceReference.name": "Name of the Service that the extension runs behind.",
    "ServiceReference.namespace": "Namespace of the Service that the extension runs behind.",
    "ServiceReference.path": "Path that is put before the path of each call, for example /hooks. Default: none.",
    "ServiceReference.port": "Port of the Service. Default: 443.",
    "ExtensionConfigStatus.handlers": "Handlers that the extension registered when it was discovered.",
    "ExtensionHandler.name": "Name of the handler: what the extension called it, a dot, and the name of the ExtensionConfig.",
    "ExtensionHandler.requestHook": "Hook that the handler answers, and the version of its messages.",
    "ExtensionHandler.failurePolicy": "What to do if a call fails. Fail blocks the operation, Ignore continues. Default: Fail.",
    "ExtensionHandler.timeoutSeconds": "Seconds after which a call counts as failed, at most 30. Default: 10.",
    "GroupVersionHook.apiVersion": "API group and version of the hook, for example hooks.runtime.cluster.x-k8s.io/v1alpha1.",
    "GroupVersionHook.hook": "Name of the hook, for example BeforeClusterCreate.",
    "Provider.providerName": "Name of the provider among those of its type, for example nutanix.",
    "Provider.type": "Type of the provider: CoreProvider, BootstrapProvider, ControlPlaneProvider, InfrastructureProvider "
    "or another type that clusterctl knows.",
    "Provider.version": "Release of the provider that this management cluster is compatible with, for example v1.10.3.",
    "Provider.watchedNamespace": "Not used: providers watch all namespaces.",
}  # fmt: skip
