"""Addresses for load balancers, as harvester-load-balancer and kube-vip give and announce them.

range.py         ranges of addresses, and which one is next
select.py        which pool serves a load balancer
pool.py          IPPools: status, booking and release
loadbalancer.py  LoadBalancers: a Service and an EndpointSlice each
service.py       Services of type LoadBalancer: their address
announce.py      makes addresses answer on the simulated network
admission.py     what is changed and refused
"""
