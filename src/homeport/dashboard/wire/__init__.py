"""HTTP and WebSockets of the page: the only modules here that know aiohttp."""
