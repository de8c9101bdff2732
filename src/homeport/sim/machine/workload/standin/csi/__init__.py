"""CSI drivers: volumes for claims, made where the real driver makes them and attached to the machine of the Pod."""
