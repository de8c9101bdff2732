// Pages that are lists of a few kinds each: templates and who uses them, teams, add-ons.
import type { ComponentChildren } from "preact";
import { byPlural, kinds } from "../kind";
import { href } from "../route";
import { useRows, type Row } from "../rows";
import { space } from "../space";
import { age, State, Table, type Column } from "../ui";

type Shown = { name: string; path: unknown; of?: (value: any) => ComponentChildren; width?: string };
type List = { title: string; group: string; plural: string; columns: Shown[] };

const BUTLER = "butler.butlerlabs.dev";
const CAPI = "cluster.x-k8s.io";

const STATE: Shown = { name: "State", path: "@state", of: (found) => <State state={found ?? ""} /> };

const TEAMS: List[] = [
  { title: "Teams", group: BUTLER, plural: "teams", columns: [
    STATE, { name: "Namespace", path: ["status", "namespace"], width: "minmax(7rem, 1fr)" }, { name: "Members", path: ["status", "memberCount"], width: "6rem" },
    { name: "Clusters", path: ["status", "clusterCount"], width: "6rem" },
    { name: "Nodes", path: ["status", "resourceUsage", "totalNodes"], width: "6rem" },
    { name: "Quota", path: ["status", "quotaStatus"] }, { name: "Why", path: ["status", "quotaMessage"], width: "minmax(0, 2fr)" },
  ] },
  { title: "Users", group: BUTLER, plural: "users", columns: [STATE] },
  { title: "Rules for new clusters", group: BUTLER, plural: "clustercreationpolicies", columns: [STATE] },
];

const ADDONS: List[] = [
  { title: "Add-ons in clusters", group: "addons.homeport.dev", plural: "clusteraddons", columns: [
    STATE, { name: "Cluster", path: ["spec", "clusterName"] }, { name: "Version", path: ["status", "version"] }, { name: "What is wrong", path: "@problem", width: "minmax(0, 3fr)" },
  ] },
  { title: "Add-ons of tenant clusters", group: BUTLER, plural: "tenantaddons", columns: [STATE, { name: "Cluster", path: ["spec", "clusterRef", "name"] }, { name: "What is wrong", path: "@problem", width: "minmax(0, 3fr)" }] },
  { title: "Catalogue", group: BUTLER, plural: "addondefinitions", columns: [STATE] },
  { title: "Resource sets", group: "addons.cluster.x-k8s.io", plural: "clusterresourcesets", columns: [STATE, { name: "What is wrong", path: "@problem", width: "minmax(0, 3fr)" }] },
];

export const Teams = () => <Lists title="Teams" lists={TEAMS} />;
export const Addons = () => <Lists title="Add-ons" lists={ADDONS} />;

function Lists({ title, lists }: { title: string; lists: List[] }) {
  const found = lists.filter((each) => byPlural(each.plural, each.group));
  return (
    <>
      <h1>{title}</h1>
      {kinds.value.length > 0 && !found.length && <p class="lonely">This API server has no such kinds.</p>}
      {found.map((each) => <One key={each.plural} list={each} />)}
    </>
  );
}

function One({ list }: { list: List }) {
  const kind = byPlural(list.plural, list.group);
  const [rows, problem] = useRows(list.group, list.plural, kind?.namespaced === false ? "" : space.value, list.columns.map((each) => each.path));
  const columns: Column<Row>[] = [
    { name: "Name", of: (r) => r.name, sort: (r) => r.name, width: "minmax(12rem, 2fr)" },
    ...(kind?.namespaced === false ? [] : [{ name: "Namespace", of: (r: Row) => r.namespace, sort: (r: Row) => r.namespace }]),
    ...list.columns.map((each, index) => ({ name: each.name, width: each.width, of: (r: Row) => (each.of ? each.of(r.values[index]) : r.values[index] ?? <span class="faint">–</span>) })),
    { name: "Age", of: (r) => age(r.created), sort: (r) => r.created, width: "5rem" },
  ];
  return (
    <section>
      <h2>{list.title}</h2>
      {problem && <p class="bad">{problem}</p>}
      {rows && <Table label={list.title} rows={rows} columns={columns} id={(r) => r.uid} empty="There are none."
        link={(r) => href(["object", list.group, list.plural, r.namespace || "-", r.name])} />}
    </section>
  );
}

// -- templates: which there are, and who refers to them -----------------------------------------------------------
const USERS: [string, string, string[]][] = [
  [CAPI, "machinedeployments", ["spec", "template", "spec", "infrastructureRef"]],
  [CAPI, "machinedeployments", ["spec", "template", "spec", "bootstrap", "configRef"]],
  ["controlplane." + CAPI, "kubeadmcontrolplanes", ["spec", "machineTemplate", "spec", "infrastructureRef"]],
  [CAPI, "clusters", ["spec", "topology"]],
];

export function Templates() {
  const found = kinds.value.filter((each) => (each.kind.endsWith("Template") || each.kind === "ClusterClass") && each.namespaced && each.group !== "");
  const used = new Map<string, string[]>();
  for (const [group, plural, path] of USERS) {
    // The kinds are fixed, so the number of hooks is, too.
    const [rows] = useRows(group, plural, space.value, [path]);
    for (const row of rows ?? []) {
      const ref = row.values[0];
      const kind = ref?.classRef ? "ClusterClass" : ref?.kind;
      const name = ref?.classRef?.name ?? ref?.name;
      if (kind && name) used.set(`${kind}/${row.namespace}/${name}`, [...(used.get(`${kind}/${row.namespace}/${name}`) ?? []), row.name]);
    }
  }
  return (
    <>
      <h1>Templates</h1>
      <p class="faint">A change of a template that is in use replaces machines: make a new one, and let the users refer to it.</p>
      {found.map((each) => <TemplateKind key={each.group + each.plural} group={each.group} plural={each.plural} kind={each.kind} used={used} />)}
    </>
  );
}

function TemplateKind({ group, plural, kind, used }: { group: string; plural: string; kind: string; used: Map<string, string[]> }) {
  const [rows, problem] = useRows(group, plural, space.value, []);
  if (problem || !rows?.length) return null;
  const columns: Column<Row>[] = [
    { name: "Name", of: (r) => r.name, sort: (r) => r.name, width: "minmax(14rem, 2fr)" },
    { name: "Namespace", of: (r) => r.namespace, sort: (r) => r.namespace },
    { name: "Used by", of: (r) => (used.get(`${kind}/${r.namespace}/${r.name}`) ?? []).join(", ") || <span class="faint">–</span>, width: "minmax(0, 2fr)" },
    { name: "Age", of: (r) => age(r.created), sort: (r) => r.created, width: "5rem" },
  ];
  return (
    <section>
      <h2>{kind} <small>{group}</small></h2>
      <Table label={`${kind} ${group}`} rows={rows} columns={columns} id={(r) => r.uid} empty="" link={(r) => href(["object", group, plural, r.namespace, r.name])} />
    </section>
  );
}
