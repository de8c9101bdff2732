"""butler.butlerlabs.dev: tenant clusters as a service, on hypervisors that a platform team owns."""
