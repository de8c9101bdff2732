"""Functions of sprig that are not here, and why: a template must give the same text each time it is rendered."""

from __future__ import annotations

from typing import Final

_CLOCK: Final = "reads the clock"
_CHANCE: Final = "returns another value each time"
_MACHINE: Final = "reads the environment of the controller"
_SECRETS: Final = "makes secrets; make them outside and pass them in a variable"

_REASONS: Final[dict[str, tuple[str, ...]]] = {
    _CLOCK: (
        "now", "ago", "date", "date_in_zone", "date_modify", "dateInZone", "dateModify", "htmlDate", "htmlDateInZone",
        "must_date_modify", "mustDateModify", "toDate", "mustToDate", "unixEpoch",
    ),
    _CHANCE: (
        "randAlpha", "randAlphaNum", "randAscii", "randBytes", "randInt", "randNumeric", "shuffle", "uuidv4",
        "encryptAES",
    ),
    _MACHINE: ("env", "expandenv", "getHostByName"),
    _SECRETS: (
        "bcrypt", "buildCustomCert", "decryptAES", "derivePassword", "genCA", "genCAWithKey", "genPrivateKey",
        "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "htpasswd",
    ),
}  # fmt: skip
REFUSED: Final[dict[str, str]] = {name: reason for reason, names in _REASONS.items() for name in names}
