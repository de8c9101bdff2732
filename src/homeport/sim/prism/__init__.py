"""A simulated Nutanix Prism Central: API v3 and v4 as two views over one world."""
