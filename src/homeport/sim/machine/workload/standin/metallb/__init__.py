"""MetalLB: addresses of its pools for Services, announced by nodes with a speaker."""
