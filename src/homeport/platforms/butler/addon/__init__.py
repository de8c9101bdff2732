"""Add-ons: the catalogue (AddonDefinition), add-ons of tenant clusters (TenantAddon) and of the management cluster
(ManagementAddon)."""
