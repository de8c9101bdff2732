"""What a page can subscribe to. Each topic is one module; `open` in catalog.py knows them."""
