"""Stories about Services, Endpoints, Ingresses and NetworkPolicies."""

from __future__ import annotations

from collections.abc import Iterator

from unit.apiserver.kinds.kind_story import Json, Step, Story, check, delete, get, merge, post, put

SERVICES = "/api/v1/namespaces/default/services"
NETWORKING = "/apis/networking.k8s.io/v1"
PORTS = [{"port": 80}]


def service(name: str, **spec: object) -> Step:
    return post(SERVICES, {"metadata": {"name": name}, "spec": spec})


def services() -> Iterator[Step]:
    yield service("1x", ports=[{"port": 99999}])
    yield service("s1", ports=PORTS, clusterIP="10.96.0.77")
    yield service("s2", ports=PORTS, clusterIP="10.96.0.77")
    yield service("s2", ports=PORTS, clusterIP="10.97.0.77")
    yield service("s2", ports=PORTS, clusterIP="x")
    yield service("s3", ports=PORTS, clusterIP="None")
    yield service("s3b", clusterIP="None")
    yield service("s4", type="ExternalName", externalName="a.b")
    yield service("s5", type="ExternalName")
    yield service("s5", type="ExternalName", externalName="a.b", clusterIP="10.96.0.9")
    yield service("s6", ports=PORTS, type="NodePort")
    yield service("s7", ports=[{"port": 80, "nodePort": 30001}], type="NodePort")
    yield service("s8", ports=[{"port": 80, "nodePort": 30001}], type="NodePort")
    yield service("s8", ports=[{"port": 80, "nodePort": 1}], type="NodePort")
    yield service("s8", ports=[{"port": 80, "nodePort": 30002}])
    yield service("s9", ports=PORTS, type="LoadBalancer")
    yield service("s10", ports=PORTS, type="LoadBalancer", externalTrafficPolicy="Local")
    yield service("s11", ports=PORTS, type="Foo")
    yield service("s12", ports=[])
    yield service("s12", ports=[{"port": 80}, {"port": 81}])
    yield service("s12", ports=[{"port": 80, "name": "a"}, {"port": 80, "name": "b"}])
    yield service("s12", ports=[{"port": 80, "name": "A_"}])
    yield service("s12", ports=[{"port": 80, "protocol": "X"}])
    yield service("s12", ports=[{"port": 80, "targetPort": "a_b"}])
    yield service("s12", ports=PORTS, sessionAffinity="x")
    yield service("s13", ports=PORTS, sessionAffinity="ClientIP")
    yield service("s14", ports=PORTS, selector={"a b": "c"})
    yield service("s14", ports=PORTS, ipFamilyPolicy="RequireDualStack")
    yield service("s15", ports=PORTS, ipFamilyPolicy="PreferDualStack")
    yield service("s16", ports=PORTS, ipFamilies=["IPv6"])
    yield service("s16", ports=PORTS, externalIPs=["x"])
    yield service("s16", ports=PORTS, externalIPs=["1.2.3.4"])
    yield service("s17", ports=PORTS, internalTrafficPolicy="x")
    yield service("s17", ports=PORTS, externalTrafficPolicy="Local")
    yield service("s18", ports=PORTS, type="LoadBalancer", loadBalancerSourceRanges=["x"])
    yield service("s18", ports=PORTS, loadBalancerClass="a/b")
    yield service("s19", ports=PORTS, clusterIP="None", type="NodePort")
    yield service("s20", ports=PORTS, clusterIP="None", selector={"a": "b"})
    yield put(f"{SERVICES}/up", {"metadata": {"name": "up"}, "spec": {"clusterIP": "None"}})
    yield get(f"{SERVICES}?fieldSelector=spec.clusterIP=None")
    yield get(f"{SERVICES}?fieldSelector=foo=x")


def service_changes() -> Iterator[Step]:
    yield service("s", ports=PORTS, clusterIP="10.96.0.77")
    one = f"{SERVICES}/s"
    yield merge(one, {"spec": {"clusterIP": "10.96.0.78"}})
    yield merge(one, {"spec": {"clusterIP": None, "clusterIPs": None}})
    yield merge(one, {"spec": {"clusterIP": ""}})
    yield merge(one, {"spec": {"type": "NodePort"}})
    yield merge(one, {"spec": {"ports": [{"port": 80, "protocol": "TCP"}]}})
    yield merge(one, {"spec": {"type": "LoadBalancer"}})
    yield merge(one, {"spec": {"type": "ClusterIP"}})
    yield merge(one, {"spec": {"type": "ExternalName", "externalName": "a.b"}})
    yield merge(one, {"spec": {"type": "ClusterIP", "externalName": None}})
    yield put(one, {"metadata": {"name": "s"}, "spec": {"ports": PORTS}})
    ingress = {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}
    yield merge(f"{one}/status", {"status": ingress})
    yield delete(one)


def endpoints() -> Iterator[Step]:
    slices, old = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", "/api/v1/namespaces/default/endpoints"
    yield check(slices, {"metadata": {"name": "a"}})
    yield check(slices, {"metadata": {"name": "a"}, "addressType": "IPv4"})
    yield check(slices, {"metadata": {"name": "a"}, "addressType": "X", "endpoints": [{"addresses": []}]})
    yield check(
        slices,
        {
            "metadata": {"name": "a"},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["x"]}, {"addresses": ["::1"]}, {"addresses": ["127.0.0.1"]}],
            "ports": [{"port": 99999, "name": "A_"}, {"port": 1}, {"port": 2}],
        },
    )
    good: Json = {"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"]}], "ports": [{"port": 80}]}
    yield post(slices, {"metadata": {"name": "a"}, **good})
    yield merge(f"{slices}/a", {"addressType": "IPv6"})
    yield merge(f"{slices}/a", {"ports": [{"port": 81}]})
    yield check(old, {"metadata": {"name": "a"}, "subsets": [{}]})
    subset: Json = {
        "addresses": [{"ip": "127.0.0.1"}, {"ip": "x"}],
        "ports": [{"port": 0}, {"port": 1, "protocol": "x"}],
    }
    yield check(old, {"metadata": {"name": "a"}, "subsets": [subset]})
    yield put(
        f"{old}/up",
        {"metadata": {"name": "up"}, "subsets": [{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 1}]}]},
    )


def networking() -> Iterator[Step]:
    ingresses, policies = (
        f"{NETWORKING}/namespaces/default/ingresses",
        f"{NETWORKING}/namespaces/default/networkpolicies",
    )
    yield check(ingresses, {"metadata": {"name": "a"}})
    paths: list[Json] = [
        {"path": "x", "backend": {}},
        {"path": "/x", "pathType": "Exact", "backend": {"service": {"name": "", "port": {}}}},
        {"path": "/x", "pathType": "Foo", "backend": {"service": {"name": "x", "port": {"number": 99999}}}},
    ]
    rules: list[Json] = [{"host": "A_", "http": {"paths": []}}, {"host": "a.b", "http": {"paths": paths}}]
    yield check(ingresses, {"metadata": {"name": "a"}, "spec": {"rules": rules, "tls": [{"hosts": ["A_"]}]}})
    yield check(
        ingresses, {"metadata": {"name": "a"}, "spec": {"rules": [{"host": "1.2.3.4"}], "ingressClassName": "A_"}}
    )
    backend = {"service": {"name": "x", "port": {"number": 80}}}
    yield post(ingresses, {"metadata": {"name": "a"}, "spec": {"defaultBackend": backend}})
    classes = f"{NETWORKING}/ingressclasses"
    yield check(classes, {"metadata": {"name": "a"}})
    yield check(classes, {"metadata": {"name": "a"}, "spec": {"controller": "x"}})
    mark = {"ingressclass.kubernetes.io/is-default-class": "true"}
    yield post(classes, {"metadata": {"name": "a", "annotations": mark}, "spec": {"controller": "a.b/c"}})
    yield post(ingresses, {"metadata": {"name": "b"}, "spec": {"defaultBackend": backend}})
    yield merge(f"{classes}/a", {"spec": {"controller": "a.b/d"}})
    wrong: Json = {
        "podSelector": {"matchLabels": {"a b": "c"}},
        "ingress": [{"from": [{}], "ports": [{"port": 99999}, {"protocol": "X"}]}],
        "egress": [{"to": [{"ipBlock": {"cidr": "x"}}, {"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]}],
        "policyTypes": ["X"],
    }
    yield check(policies, {"metadata": {"name": "a"}, "spec": wrong})
    yield post(policies, {"metadata": {"name": "a"}})
    good: Json = {"podSelector": {}, "ingress": [{}], "egress": [{"ports": [{"port": 80}]}]}
    yield post(policies, {"metadata": {"name": "b"}, "spec": good})
    yield merge(f"{policies}/b", {"spec": {"egress": None}})


STORIES: dict[str, Story] = {
    "services": services,
    "service_changes": service_changes,
    "endpoints": endpoints,
    "networking": networking,
}
