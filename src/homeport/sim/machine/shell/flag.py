"""Command lines of Kubernetes programs: words and flags."""

from __future__ import annotations

# Flags without a value, of which the next word is not one.
_SWITCHES = frozenset(
    {
        "upload-certs", "control-plane", "discovery-token-unsafe-skip-ca-verification", "dry-run", "force", "single",
        "enable-worker", "no-taints", "enable-dynamic-config", "enable-cloud-provider", "disable-components-none",
        "enable-k0s-cloud-provider", "enable-metrics-scraper",
        "ignore-pre-flight-checks", "init-only", "debug", "verbose", "start", "help",
    }
)  # fmt: skip


def parse_flags(args: list[str]) -> tuple[list[str], dict[str, str]]:
    """Words and flags; a flag that is given twice is joined by commas."""
    words: list[str] = []
    flags: dict[str, str] = {}
    at = 0
    while at < len(args):
        word = args[at]
        at += 1
        if not word.startswith("-") or word == "-":
            words.append(word)
            continue
        name, sep, value = word.lstrip("-").partition("=")
        if not sep:
            if name in _SWITCHES or at >= len(args) or (args[at].startswith("--") and not args[at].startswith("--=")):
                value = "true"
            else:
                value = args[at]
                at += 1
        flags[name] = f"{flags[name]},{value}" if name in flags else value
    return words, flags
