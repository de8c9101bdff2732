"""Web sites of the simulated network: the image factory of Talos, and mirrors of the images that guides name.

content.py   which files there are, and what is in them
web.py       their place on the network
wire.py      the server
"""
