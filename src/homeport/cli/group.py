"""Commands that have verbs, and suggest the nearest one if a verb is mistyped."""

from __future__ import annotations

from typing import Any

import click


class Group(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and name not in self.list_commands(ctx):
            ctx.fail(f"No such command {name!r}{self._near(ctx, name)}")
        return super().resolve_command(ctx, args)

    def _near(self, ctx: click.Context, name: str) -> str:
        import difflib  # late: only for errors

        known: list[Any] = self.list_commands(ctx)
        close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.65)
        if close:
            return f": did you mean '{ctx.command_path} {close[0]}'?"
        return f": expected one of {', '.join(known)}"
