// How to use a cluster: its address, kubeconfig and certificates; and what it has installed.
import { useEffect, useState } from "preact/hooks";
import { clusterOf, spaceOf, walk, type Branch } from "../branch";
import { byPlural, path } from "../kind";
import { get, may } from "../request";
import { useRows } from "../rows";
import { Command, ObjectLink, State, Table, type Column } from "../ui";

const CAPI = "cluster.x-k8s.io";
const DAY = 86_400_000;

export function ClusterAccess({ tree, namespace, name }: { tree: Branch; namespace: string; name: string }) {
  const [cluster, inner] = [clusterOf(tree), spaceOf(tree)];
  const [endpoint, setEndpoint] = useState<string | null>(null);
  const [readable, setReadable] = useState<boolean | null>(null);
  const secret = `${cluster}-kubeconfig`;
  const tenant = tree.kind === "TenantCluster";
  useEffect(() => {
    const kind = byPlural("clusters", CAPI);
    if (!kind) return;
    get(path(kind, inner, cluster)).then((found) => {
      const { host, port } = found.spec?.controlPlaneEndpoint ?? {};
      setEndpoint(host ? `https://${host}:${port}` : "");
    }).catch(() => setEndpoint(""));
    may("get", "", "secrets", inner, secret).then(setReadable).catch(() => setReadable(false));
  }, [cluster, inner]);
  const command = `homeport kubeconfig ${name} -n ${namespace}`;
  return (
    <>
      <h2>API server</h2>
      <p>{endpoint ? <code>{endpoint}</code> : <span class="faint">{endpoint === null ? "Reading the address …" : "It has no address yet."}</span>}</p>
      <h2>Kubeconfig</h2>
      {tenant && <p>You get a kubeconfig with your own name and your role in the team; the key never leaves your machine.</p>}
      {!tenant && readable !== null && <p>{readable ? <>It is the administrator's, from the Secret <code>{inner}/{secret}</code>, which you may read.</> : <>It is in the Secret <code>{inner}/{secret}</code>, and you may not get secrets in namespace {inner}: ask an administrator for the right.</>}</p>}
      <Command label="Write it to a file:" text={`${command} -o ${name}.kubeconfig`} />
      <Command label="Add it to your kubeconfig:" text={`${command} --merge --switch`} />
      <Expiry cluster={cluster} namespace={inner} />
    </>
  );
}

/** Of the machines of the control plane, as kubeadm's certificates on them say. */
function Expiry({ cluster, namespace }: { cluster: string; namespace: string }) {
  const [rows] = useRows(CAPI, "machines", namespace, [["spec", "clusterName"], ["status", "certificatesExpiryDate"]]);
  const found = (rows ?? []).filter((each) => each.values[0] === cluster && each.values[1]).sort((a, b) => (a.values[1] < b.values[1] ? -1 : 1));
  if (!found.length) return null;
  return (
    <>
      <h2>Certificates of the control plane</h2>
      <table class="plain"><thead><tr><th>Machine</th><th>Valid for</th><th>Until</th></tr></thead>
        <tbody>{found.slice(0, 20).map((each) => {
          const days = Math.floor((Date.parse(each.values[1]) - Date.now()) / DAY);
          return <tr key={each.uid}><td>{each.name}</td><td><State state={days < 0 ? "Expired" : `${days} days`} healthy={days >= 30 ? true : days < 0 ? null : false} /></td><td>{each.values[1].slice(0, 10)}</td></tr>;
        })}</tbody></table>
      <p class="faint">A rollout of the control plane renews them: Rollout, Restart.</p>
    </>
  );
}

const ADDONS = new Set(["ClusterAddon", "TenantAddon", "ServiceSet", "ClusterResourceSetBinding", "HelmReleaseProxy"]);

export function ClusterAddons({ tree }: { tree: Branch }) {
  const found = walk(tree).filter((each) => ADDONS.has(each.kind));
  const columns: Column<Branch>[] = [
    { name: "Add-on", of: (b) => <ObjectLink {...b} label={b.name} />, sort: (b) => b.name, width: "minmax(12rem, 2fr)" },
    { name: "Kind", of: (b) => b.kind, sort: (b) => b.kind },
    { name: "State", of: (b) => <State state={b.state} healthy={b.healthy} />, sort: (b) => b.state },
    { name: "Version", of: (b) => b.version || <span class="faint">–</span>, sort: (b) => b.version },
    { name: "What is wrong", of: (b) => <span title={b.problem}>{b.problem}</span>, width: "minmax(0, 3fr)" },
  ];
  return (
    <>
      <Table label="Add-ons" rows={found} columns={columns} id={(b) => `${b.kind}/${b.namespace}/${b.name}`} empty="Homeport has installed no add-on for this cluster alone. Those for several clusters, selected by labels, are on the page Add-ons." />
      <Command label="What can be installed:" text="homeport addons list" />
    </>
  );
}
