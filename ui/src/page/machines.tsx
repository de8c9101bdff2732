// All machines, or those of one cluster.
import { route, amend } from "../route";
import { matches, useRows, type Row } from "../rows";
import { space } from "../space";
import { Below } from "./timeline";
import { Age, State, Table, type Column } from "../ui";
import { href } from "../route";

const GROUP = "cluster.x-k8s.io";
const COLUMNS = [["spec", "clusterName"], "@state", ["status", "phase"], ["spec", "version"], ["status", "nodeRef", "name"], "@problem", ["spec", "failureDomain"]];

export function Machines() {
  return (<><h1>Machines</h1><MachineTable cluster="" namespace={space.value} /><Below namespace={space.value} all="all of them" /></>);
}

const SHOWN: Column<Row>[] = [
  { name: "Machine", of: (r) => <span title={r.name}>{r.name}</span>, sort: (r) => r.name, width: "minmax(17rem, 3fr)" },
  { name: "Cluster", of: (r) => r.values[0], sort: (r) => r.values[0] ?? "", width: "minmax(5rem, 1fr)" },
  { name: "State", of: (r) => <State state={r.deleting ? "Deleting" : r.values[1] || r.values[2] || ""} />, sort: (r) => r.values[1] ?? "" },
  { name: "Version", of: (r) => r.values[3], sort: (r) => r.values[3] ?? "", width: "8rem" },
  { name: "Node", of: (r) => (r.values[4] === r.name ? <span class="faint">same name</span> : <span title={r.values[4]}>{r.values[4] ?? "–"}</span>), width: "minmax(7rem, 1.5fr)" },
  { name: "Age", of: (r) => <Age time={r.created} />, sort: (r) => r.created, width: "5rem" },
  { name: "What is wrong", of: (r) => <span title={r.values[5]}>{r.values[5]}</span>, width: "minmax(0, 3fr)" },
];
const id = (row: Row) => row.uid;
const link = (row: Row) => href(["object", GROUP, "machines", row.namespace, row.name]);

export function MachineTable({ cluster, namespace }: { cluster: string; namespace: string }) {
  const [rows, problem] = useRows(GROUP, "machines", namespace, COLUMNS);
  const text = (route.value.query.get("q") ?? "").toLowerCase();
  if (problem) return <p class="lonely bad">{problem}</p>;
  if (!rows) return <p class="lonely">Reading the machines …</p>;
  const shown = cluster || text ? rows.filter((each) => (!cluster || each.values[0] === cluster) && (!text || matches(each, text))) : rows;
  return (
    <>
      <Filter count={shown.length} of={rows.length} />
      <Table label="Machines" rows={shown} columns={SHOWN} id={id} empty="No machine matches." link={link} />
    </>
  );
}

export function Filter({ count, of }: { count: number; of: number }) {
  return (
    <p class="filter">
      <label>Filter <input type="search" value={route.value.query.get("q") ?? ""} onInput={(event) => amend({ q: event.currentTarget.value })} /></label>
      <span class="faint">{count} of {of}</span>
    </p>
  );
}
