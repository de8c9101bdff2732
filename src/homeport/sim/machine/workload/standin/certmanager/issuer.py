"""Issuers and ClusterIssuers: which of them can sign, and with what."""

from __future__ import annotations

from homeport.api.meta import Resource
from homeport.sim.machine.workload.kind import SECRET, Json
from homeport.sim.machine.workload.standin.certmanager.kind import CLUSTER_ISSUER, ISSUER
from homeport.sim.machine.workload.standin.certmanager.sign import Authority, read_authority
from homeport.sim.machine.workload.standin.certmanager.status import ready_condition, with_condition
from homeport.sim.machine.workload.view import View, leaving

_NAMES = {"acme": "ACME", "vault": "Vault", "venafi": "Venafi"}


class Issuers:
    """Those of one pass. `own_namespace` has the Secrets of ClusterIssuers."""

    def __init__(self, view: View, own_namespace: str) -> None:
        self._view = view
        self._own = own_namespace
        self._secrets = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in view.all(SECRET)}

    async def settle(self) -> None:
        for kind in (ISSUER, CLUSTER_ISSUER):
            for issuer in self._view.all(kind):
                if not leaving(issuer):
                    await self._report(kind, issuer)

    async def _report(self, kind: Resource, issuer: Json) -> None:
        status, reason, message = self._judge(kind, issuer)
        condition = ready_condition(status, reason, message, issuer)
        conditions = with_condition(issuer, condition, self._view.stamp)
        await self._view.set_status(kind, issuer, {"conditions": conditions})

    def _judge(self, kind: Resource, issuer: Json) -> tuple[str, str, str]:
        spec = issuer.get("spec") or {}
        if "selfSigned" in spec:
            return "True", "IsReady", ""
        if "ca" not in spec:
            name = next((_NAMES.get(each, each) for each in sorted(spec)), "these")
            text = f"{name} issuers are not simulated: use a selfSigned or a ca issuer in simulated clusters"
            return "False", "NotSimulated", text
        name = spec["ca"].get("secretName", "")
        try:
            self._authority(kind, issuer)
        except LookupError as missing:
            text = str(missing.args[0])
            found = (self._namespace(kind, issuer), name) in self._secrets
            why = f"Error getting keypair for CA issuer: {f'no data for {text!r} in secret' if found else text}"
            return "False", "ErrInvalidKeyPair" if found else "ErrGetKeyPair", why
        except ValueError as error:
            return "False", "ErrInvalidKeyPair", f"Error signing with the key pair of Secret {name!r}: {error}"
        return "True", "KeyPairVerified", "Signing CA verified"

    def _namespace(self, kind: Resource, issuer: Json) -> str:
        return str(issuer["metadata"]["namespace"]) if kind.namespaced else self._own

    def _authority(self, kind: Resource, issuer: Json) -> Authority:
        name = issuer["spec"]["ca"].get("secretName", "")
        secret = self._secrets.get((self._namespace(kind, issuer), name))
        if secret is None:
            raise LookupError(f'secrets "{name}" not found')
        return read_authority(secret.get("data") or {})

    def find(self, reference: Json, namespace: str) -> tuple[Json | None, Authority | None]:
        """The issuer that a request names, if it is there and Ready, and what it signs with: None for itself."""
        kind = CLUSTER_ISSUER if reference.get("kind") == CLUSTER_ISSUER.kind else ISSUER
        for each in self._view.all(kind):
            meta = each["metadata"]
            if meta["name"] != reference.get("name") or (kind.namespaced and meta["namespace"] != namespace):
                continue
            if self._judge(kind, each)[0] != "True":
                return None, None
            return each, None if "selfSigned" in each["spec"] else self._authority(kind, each)
        return None, None
