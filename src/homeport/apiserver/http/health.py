"""/healthz, /livez and /readyz: each the sum of named checks."""

from __future__ import annotations

from collections.abc import Callable

from homeport.apiserver.http.exchange import Exchange
from homeport.apiserver.http.reply import Reply
from homeport.apiserver.http.respond import page_not_found, text_reply

# Gives what is wrong, or '' when nothing is.
Check = Callable[[], str]
ROOTS = ("healthz", "livez", "readyz")


class Health:
    def __init__(self) -> None:
        self._checks: dict[str, dict[str, Check]] = {root: {"ping": lambda: ""} for root in ROOTS}

    def add(self, name: str, check: Check, *, live: bool = True) -> None:
        """A check of readiness; with `live` one whose failure means that the process should be restarted, too."""
        for root in ROOTS if live else ("readyz",):
            self._checks[root][name] = check

    def paths(self) -> list[str]:
        return sorted(
            path for root in ROOTS for path in (f"/{root}", *(f"/{root}/{name}" for name in self._checks[root]))
        )

    def serve(self, exchange: Exchange) -> Reply | None:
        """The response, or None if the path is not a health endpoint."""
        root, _, name = exchange.info.path.strip("/").partition("/")
        checks = self._checks.get(root)
        if checks is None:
            return None
        if not name:
            return self._all(exchange, root, checks)
        if name not in checks:
            return page_not_found(exchange)
        wrong = _run(checks[name])
        if wrong:
            return text_reply(exchange, f"internal server error: {wrong}\n", 500)
        return text_reply(exchange, "ok")

    def _all(self, exchange: Exchange, root: str, checks: dict[str, Check]) -> Reply:
        excluded = set(exchange.query.all("exclude"))
        lines, failed = [], []
        for name, check in checks.items():
            if name in excluded:
                excluded.discard(name)
                lines.append(f"[+]{name} excluded: ok")
            elif wrong := _run(check):
                lines.append(f"[-]{name} failed: {wrong}")
                failed.append(name)
            else:
                lines.append(f"[+]{name} ok")
        if excluded:
            unknown = ", ".join(f'"{name}"' for name in sorted(excluded))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {unknown}")
        if failed:
            return text_reply(exchange, "\n".join([*lines, f"{root} check failed", ""]), 500)
        if "verbose" in exchange.query:
            return text_reply(exchange, "\n".join([*lines, f"{root} check passed", ""]))
        return text_reply(exchange, "ok")


def _run(check: Check) -> str:
    try:
        return check()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
