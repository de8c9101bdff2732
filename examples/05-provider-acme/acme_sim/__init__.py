"""A simulated Acme: `homeport up --sim acme_sim.simulator:SIMULATOR`. It never imports the provider."""
