"""Key pairs must hold a public key of OpenSSH."""

from __future__ import annotations

from homeport.apiserver.verb.admission import Attributes
from homeport.sim.harvester.admission.refusal import invalid
from homeport.sim.harvester.manifest import fingerprint


def check_key_pair(attributes: Attributes) -> None:
    key = ((attributes.object or {}).get("spec") or {}).get("publicKey", "")
    if not key:
        raise invalid("public key is required", "spec.publicKey")
    try:
        fingerprint(key)
    except ValueError:
        raise invalid("key is not in valid OpenSSH public key format", "spec.publicKey") from None
