"""A change rehearsed on a copy of the plane's objects: the same controllers, in virtual time, without a vendor."""
