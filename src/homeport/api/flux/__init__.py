"""source.toolkit.fluxcd.io: where charts come from, in the spelling of Flux."""
