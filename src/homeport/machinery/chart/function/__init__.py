"""Functions of templates that charts have beyond those of Go and sprig."""
