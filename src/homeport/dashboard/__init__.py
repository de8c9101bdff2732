"""The web page: it shows and changes what the user's own credential may, and has no rights of its own."""
