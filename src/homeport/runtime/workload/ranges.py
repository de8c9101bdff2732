"""Addresses that parts of the plane hand out themselves, for Services that name one of them."""

from __future__ import annotations

from ipaddress import ip_address

from homeport.machinery.address import AddressSet


class ServiceRanges:
    """Whoever sets a range decides which Service gets which of its addresses; others are never given any of them."""

    def __init__(self) -> None:
        self._ranges: dict[str, AddressSet] = {}

    def set(self, owner: str, addresses: AddressSet) -> None:
        self._ranges[owner] = addresses

    def texts(self) -> dict[str, str]:
        """By owner, as `set` got them."""
        return {owner: str(addresses) for owner, addresses in self._ranges.items()}

    def __contains__(self, address: str) -> bool:
        try:
            found = ip_address(address)
        except ValueError:
            return False
        return any(found in each for each in self._ranges.values())
