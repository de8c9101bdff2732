"""A provider for the imaginary hypervisor Acme: `homeport up --plugin acme.component:COMPONENT`."""
