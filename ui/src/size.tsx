// Sizes of machines: which fields of a schema are one, sizes to choose from, and what a team's quota leaves.
import { useRows } from "./rows";
import type { Schema } from "./schema";

type Value = Record<string, any>;
type Part = "cpu" | "memory" | "disk";
/** In cores, and in Gi. */
export type Size = Partial<Record<Part, number>>;

const NAMES: [Part, RegExp][] = [
  ["cpu", /^(cpu|cpus|cores|vcpus?|vcpuSockets|workerCPU)$/],
  ["memory", /^(memory|memorySize|memoryMB|memoryGi|workerMemoryGi)$/],
  ["disk", /^(disk|diskSize|systemDiskSize|diskGB|diskGi|workerDiskGi)$/],
];
const STEPS: Record<Part, number[]> = { cpu: [1, 2, 4, 8, 16, 32], memory: [2, 4, 8, 16, 32, 64, 128], disk: [20, 40, 80, 160, 320] };
const PRESETS: { name: string; size: Required<Size> }[] = [
  { name: "small", size: { cpu: 2, memory: 4, disk: 40 } },
  { name: "medium", size: { cpu: 4, memory: 8, disk: 80 } },
  { name: "large", size: { cpu: 8, memory: 16, disk: 160 } },
  { name: "very large", size: { cpu: 16, memory: 64, disk: 320 } },
];

export const partOf = (name: string): Part | undefined => NAMES.find(([, pattern]) => pattern.test(name))?.[0];

/** How a field writes so many cores or Gi. */
function written(name: string, schema: Schema, amount: number): string | number {
  if (schema.type === "integer" || schema.type === "number") return name.endsWith("MB") ? amount * 1024 : amount;
  return partOf(name) === "cpu" ? String(amount) : `${amount}Gi`;
}

/** Cores or Gi of what a field says; undefined if it says nothing that can be counted. */
export function counted(name: string, value: unknown): number | undefined {
  const found = /^(\d+(?:\.\d+)?)(m|Ki|Mi|Gi|Ti|M|G|T)?$/.exec(String(value ?? ""));
  if (!found) return undefined;
  const amount = Number(found[1]);
  if (partOf(name) === "cpu") return found[2] === "m" ? amount / 1000 : amount;
  if (name.endsWith("MB")) return amount / 1024;
  if (/(GB|Gi)$/.test(name) && !found[2]) return amount;
  const unit: Record<string, number> = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, M: 1e6, G: 1e9, T: 1e12 };
  return (amount * (found[2] ? unit[found[2]] ?? 1 : 1)) / 2 ** 30;
}

function allowed(schema: Schema, value: string | number): boolean {
  if (schema.enum) return schema.enum.includes(value);
  if (typeof value === "number") return value >= (schema.minimum ?? -Infinity) && value <= (schema.maximum ?? Infinity);
  return !schema.pattern || new RegExp(schema.pattern).test(value);
}

/** A machine runs on one host: no size is larger than the largest one. `host` has what each has, as far as it is known. */
export function largest(host: { cpu: string[]; memory: string[] }): Size {
  const most = (part: "cpu" | "memory") => Math.max(0, ...host[part].map((each) => counted(part, each) ?? 0)) || Infinity;
  return { cpu: most("cpu"), memory: most("memory") };
}

const fits = (size: Size, most: Size): boolean => (Object.entries(size) as [Part, number][]).every(([part, amount]) => amount <= (most[part] ?? Infinity));

/** What a field that is a size offers, as far as its schema allows it and a host has it. */
export function sizes(name: string, schema: Schema, most: Size): string[] {
  const part = partOf(name);
  if (!part) return [];
  return STEPS[part].filter((each) => fits({ [part]: each }, most)).map((each) => written(name, schema, each)).filter((each) => allowed(schema, each)).map(String);
}

/** The fields of an object that together are the size of a machine; undefined if they are not. */
function parts(schema: Schema): Partial<Record<Part, string>> | undefined {
  const found: Partial<Record<Part, string>> = {};
  for (const [name, each] of Object.entries(schema.properties ?? {})) {
    const part = partOf(name);
    if (part && !found[part] && !/^(accepted for older|deprecated)/i.test(each.description ?? "")) found[part] = name;
  }
  return found.cpu && found.memory ? found : undefined;
}

export function Sizes({ schema, value, most, onChange }: { schema: Schema; value: Value; most: Size; onChange: (value: Value) => void }) {
  const fields = parts(schema);
  if (!fields) return null;
  const entries = Object.entries(fields) as [Part, string][];
  const made = (size: Size): Value => ({
    ...Object.fromEntries(entries.map(([part, name]) => [name, written(name, schema.properties![name]!, size[part]!)])),
    ...(schema.properties!.vcpusPerSocket ? { vcpusPerSocket: 1 } : {}),
  });
  const known = PRESETS.filter((each) => fits({ cpu: each.size.cpu, memory: each.size.memory }, most));
  const usable = known.filter((each) => Object.entries(made(each.size)).every(([name, found]) => allowed(schema.properties![name]!, found)));
  const chosen = usable.find((each) => Object.entries(made(each.size)).every(([name, found]) => String(value[name]) === String(found)));
  if (!usable.length) return null;
  const text = (size: Required<Size>) => [`${size.cpu} vCPUs`, `${size.memory} GiB memory`, ...(fields.disk ? [`${size.disk} GiB disk`] : [])].join(", ");
  return (
    <label><span class="name">Size</span> <select value={chosen?.name ?? ""} onChange={(event) => { const next = usable.find((each) => each.name === event.currentTarget.value); if (next) onChange({ ...value, ...made(next.size) }); }}>
      <option value="">{entries.some(([, name]) => value[name] !== undefined) ? "as below" : "the default"}</option>
      {usable.map((each) => <option key={each.name} value={each.name}>{each.name}: {text(each.size)}</option>)}
    </select>{known.length < PRESETS.length && <small class="faint">No host has more than {host(most)}.</small>}</label>
  );
}

const host = ({ cpu, memory }: Size): string => [...(cpu! < Infinity ? [`${cpu} cores`] : []), ...(memory! < Infinity ? [`${Math.round(memory!)} GiB memory`] : [])].join(" or ");

const BUTLER = "butler.butlerlabs.dev";

/** Of a TenantCluster: what its team may use, and whether it fits. */
export function Quota({ body }: { body: Value }) {
  const [teams] = useRows(BUTLER, "teams", "", [["status", "namespace"], ["spec", "resourceLimits"], ["spec", "quotas"], ["status", "resourceUsage"]]);
  const wanted = body.spec?.teamRef?.name;
  const team = (teams ?? []).find((each) => (wanted ? each.name === wanted : each.values[0] === body.metadata?.namespace));
  const limits = team?.values[1] ?? team?.values[2];
  if (!team || !limits) return null;
  const usage = team.values[3] ?? {};
  const { replicas, machineTemplate: machine = {} } = body.spec?.workers ?? {};
  const each = (name: string, value: unknown) => { const found = counted(name, value); return found === undefined || replicas === undefined ? undefined : found * replicas; };
  const lines: [string, string, number | undefined, number | undefined, number | undefined][] = [
    ["clusters", "", limits.maxClusters, usage.clusters ?? 0, 1],
    ["workers", "", limits.maxTotalWorkers ?? limits.maxTotalNodes, usage.totalNodes ?? 0, replicas],
    ["CPU cores", "", counted("cpu", limits.maxCPUCores), counted("cpu", usage.totalCPU) ?? 0, each("cpu", machine.cpu)],
    ["memory", " GiB", counted("memory", limits.maxMemory), counted("memory", usage.totalMemory) ?? 0, each("memory", machine.memory)],
    ["storage", " GiB", counted("disk", limits.maxStorage), counted("disk", usage.totalStorage) ?? 0, each("disk", machine.diskSize ?? machine.disk)],
  ];
  const shown = lines.filter(([, , most]) => most !== undefined);
  if (!shown.length) return null;
  const over = shown.filter(([, , most, used, more]) => used! + (more ?? 0) > most!);
  const number = (found: number) => String(Math.round(found * 10) / 10);
  return (
    <div class={`quota ${over.length ? "cause banner" : "faint"}`} role="status">
      <b>Quota of team {team.name}{over.length ? `: not enough ${over.map(([name]) => name).join(", ")} left` : ""}</b>
      <ul>{shown.map(([name, unit, most, used, more]) => <li key={name}>{name}: {number(used!)} of {number(most!)}{unit} used, this cluster adds {more === undefined ? "the default" : number(more) + unit}</li>)}</ul>
    </div>
  );
}
