"""What goes wrong with charts and releases."""

from __future__ import annotations


class HelmError(Exception):
    """The message names the chart or release, says what is wrong with it and what to do. It never holds a secret."""


class ReleaseError(HelmError):
    """A release can't be installed, upgraded, rolled back or uninstalled as asked. Nothing was changed."""


class NotOwned(ReleaseError):
    """A release of this name exists, and is somebody else's."""


class SourceError(HelmError):
    """A chart can't be fetched. `transient`: the same request may succeed later."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient
