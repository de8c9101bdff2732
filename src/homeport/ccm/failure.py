"""What the vendor refuses: how often in a row it did decides when it is asked again."""

from __future__ import annotations

from homeport.api.meta import Unstructured
from homeport.client.protocol import Key
from homeport.infra.error import ProviderError, delay_of, policy_of
from homeport.runtime.event import Recorder
from homeport.runtime.outcome import Wait


class Failures:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._counts: dict[Key, int] = {}

    def wait(self, key: Key, obj: Unstructured, error: ProviderError) -> Wait:
        """The first one in a row is an event of the object."""
        count = self._counts[key] = self._counts.get(key, 0) + 1
        wait = Wait(policy_of(error).reason, error.message, after=delay_of(error, count))
        if count == 1:
            self._recorder.record(obj, wait.reason, wait.message, warning=True)
        return wait

    def forget(self, key: Key) -> None:
        self._counts.pop(key, None)
