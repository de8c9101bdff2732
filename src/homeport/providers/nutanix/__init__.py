"""Nutanix AHV through Prism Central: `component.COMPONENT`."""
