// Pages that are lists of a few kinds each: templates and who uses them, teams, add-ons.
import type { ComponentChildren } from "preact";
import { byPlural, kinds } from "../kind";
import { href } from "../route";
import { useRows, type Row } from "../rows";
import { space } from "../space";
import { age, State, Table, type Column } from "../ui";

type Shown = { name: string; path: unknown; of?: (value: any, row: Row) => ComponentChildren; width?: string };
type List = { title: string; group: string; plural: string; columns: Shown[]; hidden?: unknown[]; empty: string };

const BUTLER = "butler.butlerlabs.dev";
const CAPI = "cluster.x-k8s.io";

const STATE: Shown = { name: "State", path: "@state", of: (found) => <State state={found ?? ""} /> };

// What a team may use, by the name of what it uses.
const LIMITS: [string, string, string][] = [
  ["clusters", "clusters", "maxClusters"], ["nodes", "totalNodes", "maxTotalNodes"], ["workers", "totalNodes", "maxTotalWorkers"], ["CPU", "totalCPU", "maxCPUCores"], ["memory", "totalMemory", "maxMemory"], ["storage", "totalStorage", "maxStorage"],
];
const QUOTA = 5; // the place of the limits: after the columns of teams

function Used({ usage, limits }: { usage: Record<string, any>; limits: Record<string, any> }) {
  const shown = LIMITS.filter(([name, used, most]) => limits[most] !== undefined || (name !== "workers" && usage[used] !== undefined));
  if (!shown.length) return <span class="faint">nothing used, no limits</span>;
  const text = shown.map(([name, used, most]) => `${name} ${usage[used] ?? 0}${limits[most] === undefined ? "" : ` of ${limits[most]}`}`).join(", ");
  return <span title={text}>{text}</span>;
}

const WRONG: Shown = { name: "What is wrong", path: "@problem", of: (found) => <span title={found}>{found}</span>, width: "minmax(0, 3fr)" };

const TEAMS: List[] = [
  { title: "Teams", group: BUTLER, plural: "teams", columns: [
    STATE, { name: "Namespace", path: ["status", "namespace"], width: "minmax(7rem, 1fr)" }, { name: "Members", path: ["status", "memberCount"], width: "6rem" },
    { name: "Used, of the quota", path: ["status", "resourceUsage"], of: (usage, row) => <Used usage={usage ?? {}} limits={row.values[QUOTA] ?? {}} />, width: "minmax(18rem, 4fr)" },
    { name: "Quota", path: ["status", "quotaStatus"], of: (found, row) => <span title={row.values[QUOTA + 1]}><State state={found ?? ""} healthy={found === "OK" || null} /> {row.values[QUOTA + 1]}</span>, width: "minmax(7rem, 2fr)" },
  ], hidden: [["spec", "resourceLimits"], ["status", "quotaMessage"]], empty: "There is no Team. Butler creates a namespace, roles and a quota for each Team." },
  { title: "Users", group: BUTLER, plural: "users", columns: [STATE], empty: "There is no User." },
  { title: "Rules for new clusters", group: BUTLER, plural: "clustercreationpolicies", columns: [STATE], empty: "There is no ClusterCreationPolicy: teams create clusters within their quotas." },
];

const ADDONS: List[] = [
  { title: "Add-ons in clusters", group: "addons.homeport.dev", plural: "clusteraddons", columns: [
    STATE, { name: "Cluster", path: ["spec", "clusterName"] }, { name: "Version", path: ["status", "version"] }, WRONG,
  ], empty: "No add-on is installed. The catalogue below lists what can be." },
  { title: "Add-ons of tenant clusters", group: BUTLER, plural: "tenantaddons", columns: [STATE, { name: "Cluster", path: ["spec", "clusterRef", "name"] }, WRONG], empty: "There is no TenantAddon." },
  { title: "Catalogue", group: BUTLER, plural: "addondefinitions", columns: [STATE], empty: "There is no AddonDefinition." },
  { title: "Resource sets", group: "addons.cluster.x-k8s.io", plural: "clusterresourcesets", columns: [STATE, WRONG], empty: "There is no ClusterResourceSet." },
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
  const [rows, problem] = useRows(list.group, list.plural, kind?.namespaced === false ? "" : space.value, [...list.columns.map((each) => each.path), ...(list.hidden ?? [])]);
  const columns: Column<Row>[] = [
    { name: "Name", of: (r) => r.name, sort: (r) => r.name, width: "minmax(12rem, 2fr)" },
    ...(kind?.namespaced === false ? [] : [{ name: "Namespace", of: (r: Row) => r.namespace, sort: (r: Row) => r.namespace }]),
    ...list.columns.map((each, index) => ({ name: each.name, width: each.width, of: (r: Row) => (each.of ? each.of(r.values[index], r) : r.values[index] ?? <span class="faint">–</span>) })),
    { name: "Age", of: (r) => age(r.created), sort: (r) => r.created, width: "5rem" },
  ];
  return (
    <section>
      <h2>{list.title}</h2>
      {problem && <p class="bad">{problem}</p>}
      {rows && <Table label={list.title} rows={rows} columns={columns} id={(r) => r.uid} empty={list.empty}
        link={(r) => href(["object", list.group, list.plural, r.namespace || "-", r.name])} />}
    </section>
  );
}

// -- templates: which there are, and who refers to them -----------------------------------------------------------
// Kinds that refer to templates, and where. References to a ClusterTemplate are names.
const PLANES = "controlplane." + CAPI;
const USERS: { group: string; plural: string; columns: string[][] }[] = [
  { group: CAPI, plural: "machinedeployments", columns: [["spec", "template", "spec", "infrastructureRef"], ["spec", "template", "spec", "bootstrap", "configRef"]] },
  { group: CAPI, plural: "machinepools", columns: [["spec", "template", "spec", "infrastructureRef"], ["spec", "template", "spec", "bootstrap", "configRef"]] },
  { group: PLANES, plural: "kubeadmcontrolplanes", columns: [["spec", "machineTemplate", "spec", "infrastructureRef"], ["spec", "machineTemplate", "infrastructureRef"]] },
  { group: PLANES, plural: "k0scontrolplanes", columns: [["spec", "machineTemplate", "spec", "infrastructureRef"], ["spec", "machineTemplate", "infrastructureRef"]] },
  { group: CAPI, plural: "clusters", columns: [["spec", "topology", "classRef"]] },
  { group: CAPI, plural: "clusterclasses", columns: [["spec", "infrastructure"], ["spec", "controlPlane", "templateRef"], ["spec", "controlPlane", "machineInfrastructure"], ["spec", "workers"]] },
  { group: "k0rdent.mirantis.com", plural: "clusterdeployments", columns: [["spec", "template"]] },
];

type User = { kind: string; name: string; link: string };

/** Everything in a value that refers to a template: kind, namespace and name. */
function refers(value: any, row: Row, plural: string): string[] {
  if (plural === "clusterdeployments") return typeof value === "string" ? [`ClusterTemplate/${row.namespace}/${value}`] : [];
  if (!value || typeof value !== "object") return [];
  if (plural === "clusters") return value.name ? [`ClusterClass/${value.namespace ?? row.namespace}/${value.name}`] : [];
  if (typeof value.kind === "string" && typeof value.name === "string") return [`${value.kind}/${value.namespace ?? row.namespace}/${value.name}`];
  return Object.values(value).flatMap((each) => refers(each, row, plural));
}

function useUsers(): Map<string, User[]> {
  const used = new Map<string, User[]>();
  for (const { group, plural, columns } of USERS) {
    // The kinds are fixed, so the number of hooks is, too.
    const [rows] = useRows(group, plural, space.value, columns);
    const kind = byPlural(plural, group)?.kind ?? plural;
    for (const row of rows ?? []) {
      for (const key of new Set(row.values.flatMap((each) => refers(each, row, plural)))) {
        used.set(key, [...(used.get(key) ?? []), { kind, name: row.name, link: href(["object", group, plural, row.namespace, row.name]) }]);
      }
    }
  }
  return used;
}

export function Templates() {
  const found = kinds.value.filter((each) => (each.kind.endsWith("Template") || each.kind === "ClusterClass") && each.namespaced && each.group !== "");
  const used = useUsers();
  return (
    <>
      <h1>Templates</h1>
      <p class="faint">Machines are made from templates. To change machines, create a new template and refer to it, for example in a MachineDeployment. The page of that object shows which machines the change replaces before you apply it.</p>
      {found.map((each) => <TemplateKind key={each.group + each.plural} group={each.group} plural={each.plural} kind={each.kind} used={used} />)}
    </>
  );
}

const SHOWN = 5;

function Using({ users }: { users: User[] }) {
  if (!users.length) return <span class="faint">nothing</span>;
  return (
    <span title={users.map((each) => `${each.kind} ${each.name}`).join(", ")}>
      {users.slice(0, SHOWN).map((each, index) => <>{index > 0 && ", "}<a href={each.link}>{each.kind} {each.name}</a></>)}
      {users.length > SHOWN && ` and ${users.length - SHOWN} more`}
    </span>
  );
}

function TemplateKind({ group, plural, kind, used }: { group: string; plural: string; kind: string; used: Map<string, User[]> }) {
  const [rows, problem] = useRows(group, plural, space.value, []);
  if (problem || !rows?.length) return null;
  const users = (row: Row) => used.get(`${kind}/${row.namespace}/${row.name}`) ?? [];
  const columns: Column<Row>[] = [
    { name: "Name", of: (r) => r.name, sort: (r) => r.name, width: "minmax(14rem, 2fr)" },
    { name: "Namespace", of: (r) => r.namespace, sort: (r) => r.namespace, width: "minmax(7rem, 1fr)" },
    { name: "Used by", of: (r) => <Using users={users(r)} />, sort: (r) => users(r).length, width: "minmax(0, 3fr)" },
    { name: "Age", of: (r) => age(r.created), sort: (r) => r.created, width: "5rem" },
  ];
  return (
    <section>
      <h2>{kind} <small>{group}</small></h2>
      <Table label={`${kind} ${group}`} rows={rows} columns={columns} id={(r) => r.uid} empty="" link={(r) => href(["object", group, plural, r.namespace, r.name])} />
    </section>
  );
}
