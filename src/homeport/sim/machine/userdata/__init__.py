"""User data of a simulated machine: cloud-init and Ignition."""
