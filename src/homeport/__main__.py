"""`python -m homeport` is `homeport`."""

from homeport.cli.main import main

main()
