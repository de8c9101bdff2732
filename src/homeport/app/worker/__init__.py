"""Processes of one plane that share the work of its controllers: `homeport up --workers N`."""
