"""Nutanix AHV through Prism Central."""
