// The bench: what simulated hypervisors have, which faults they have, and what they were asked.
import { useEffect, useState } from "preact/hooks";
import { simulators } from "../pages";
import { amend, route } from "../route";
import { send } from "../request";
import { Command, now, report, State, Table, type Column } from "../ui";

type Count = { fault: any; met: number; struck: number };
type Entry = { number: number; time: number; method: string; path: string; query: string; user: string; status: number; seconds: number; faults: string[] };
type Entities = { name: string; columns: string[]; rows: string[][] };

const BOTH = [
  { name: "the API answers 503", fault: { effect: { kind: "status", status: 503 } } },
  { name: "the API throttles requests", fault: { effect: { kind: "throttle", retryAfter: 5 } } },
  { name: "answers take 3 seconds", fault: { effect: { kind: "delay", seconds: 3 } } },
  { name: "every second connection is dropped", fault: { match: { every: 2 }, effect: { kind: "drop" } } },
  { name: "new VMs never boot", fault: { match: { kind: "vm" }, effect: { kind: "no-boot" } } },
  { name: "new VMs stop after their start", fault: { match: { kind: "vm" }, effect: { kind: "crash" } } },
  { name: "new VMs get no address", fault: { match: { kind: "vm" }, effect: { kind: "address-late" } } },
];
const PRESETS: Record<string, { name: string; fault: object }[]> = {
  prism: [
    { name: "tasks that create VMs fail", fault: { match: { operation: "kVmCreate" }, effect: { kind: "task-failure", message: "no host has enough memory" } } },
    { name: "tasks hang", fault: { effect: { kind: "task-hang" } } },
    { name: "clusters are out of reach", fault: { match: { kind: "cluster" }, effect: { kind: "outage" } } },
    { name: "disks are full", fault: { effect: { kind: "full-disk" } } },
    { name: "reads are ten minutes old", fault: { effect: { kind: "stale", seconds: 600 } } },
  ],
  harvester: [
    { name: "imports of images fail", fault: { effect: { kind: "import-failure" } } },
    { name: "guest agents report nothing", fault: { match: { kind: "vm" }, effect: { kind: "agent-silence" } } },
    { name: "all hosts fail", fault: { match: { kind: "node" }, effect: { kind: "outage" } } },
  ],
};

const at = (name: string, page: string) => `/homeport/sim/${encodeURIComponent(name)}/${page}`;
const raw = (name: string, page: string) => `kubectl get --raw ${at(name, page)}`;

/** Reads again each second while the page is shown. */
function usePolled<T>(path: string): [T | null, string, () => void] {
  const [state, setState] = useState<T | null>(null);
  const [problem, setProblem] = useState("");
  const read = () => send("GET", path).then((found) => { setState(JSON.parse(found.text)); setProblem(""); }).catch((error: Error) => setProblem(error.message));
  useEffect(() => {
    setState(null);
    void read();
    const timer = setInterval(() => { if (!document.hidden) void read(); }, 1000);
    return () => clearInterval(timer);
  }, [path]);
  return [state, problem, () => void read()];
}

const PARTS: Record<string, (props: { name: string }) => any> = { faults: Faults, journal: Journal, world: World };

export function Simulator() {
  const names = simulators.value;
  const name = route.value.query.get("of") ?? names[0] ?? "";
  const tab = route.value.query.get("tab") ?? "faults";
  const Part = PARTS[tab] ?? Faults;
  if (!names.length) return <><h1>Simulator</h1><p class="lonely">This plane simulates nothing, or you may not see it. Start it with <code>homeport up --sim</code>; the right is <code>get</code> on the path <code>/homeport/sim*</code>.</p></>;
  return (
    <>
      <h1>Simulator</h1>
      <p class="filter"><label>Hypervisor <select value={name} onChange={(event) => amend({ of: event.currentTarget.value })}>{names.map((each) => <option key={each}>{each}</option>)}</select></label></p>
      <nav class="tabs" aria-label="Parts of the simulator">
        {Object.keys(PARTS).map((each) => (
          <a key={each} href={`#/simulator?of=${name}&tab=${each}`} aria-current={tab === each ? "page" : undefined}
            onClick={(event) => { event.preventDefault(); amend({ of: name, tab: each }); }}>{each}</a>
        ))}
      </nav>
      <Part key={name} name={name} />
    </>
  );
}

function Faults({ name }: { name: string }) {
  const [counts, problem, again] = usePolled<Count[]>(at(name, "faults"));
  const presets = [...BOTH, ...(PRESETS[name] ?? [])];
  const [own, setOwn] = useState("");
  async function change(work: () => Promise<unknown>, done: string): Promise<void> {
    try { await work(); report(done, "good"); } catch (error) { report((error as Error).message); }
    again();
  }
  const inject = (text: string, label: string) => change(() => send("POST", at(name, "faults"), text, "application/yaml"), `Fault injected: ${label}`);
  const has = (label: string) => counts?.some((each) => each.fault.name === label);
  return (
    <>
      {problem && <p class="bad">{problem}</p>}
      <h2>Active faults</h2>
      {counts?.length === 0 && <p class="faint">No faults: the simulator works as it should.</p>}
      {counts && counts.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Faults">
          <table class="plain"><thead><tr><th>Fault</th><th>Effect</th><th>Matches</th><th>Met</th><th>Struck</th><th>Remove</th></tr></thead>
            <tbody>{counts.map((each) => (
              <tr key={each.fault.name}>
                <td>{each.fault.name}</td><td><code>{text(each.fault.effect)}</code></td><td><code>{text(each.fault.match ?? {}) || "everything"}</code></td><td>{each.met}</td><td>{each.struck}</td>
                <td><button type="button" onClick={() => void change(() => send("DELETE", at(name, `faults/${encodeURIComponent(each.fault.name)}`)), `Fault removed: ${each.fault.name}`)}>Remove<span class="hidden"> {each.fault.name}</span></button></td>
              </tr>
            ))}</tbody></table>
        </div>
      )}
      <h2>Inject a fault</h2>
      <p class="actions">{presets.map((each) => (
        <button type="button" key={each.name} disabled={has(each.name)} onClick={() => void inject(JSON.stringify({ faults: [{ name: each.name, ...each.fault }] }), each.name)}>{each.name}</button>
      ))}</p>
      <details><summary>Another fault, as YAML</summary>
        <form class="form" onSubmit={(event) => { event.preventDefault(); void inject(own, "as written"); }}>
          <label>Faults <textarea rows={7} spellcheck={false} value={own} placeholder={"faults:\n- name: the second control plane never boots\n  match: {kind: vm, entity: \"*-cp-*\", nth: 2}\n  effect: {kind: no-boot}"} onInput={(event) => setOwn(event.currentTarget.value)} /></label>
          <button type="submit" disabled={!own.trim()}>Inject</button>
        </form>
      </details>
      <Command text={raw(name, "faults")} />
    </>
  );
}

const text = (found: Record<string, unknown>) => Object.entries(found).map(([key, value]) => `${key}: ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", ");

function Journal({ name }: { name: string }) {
  const [entries, problem] = usePolled<Entry[]>(at(name, "journal?limit=500"));
  const wanted = (route.value.query.get("q") ?? "").toLowerCase();
  const rows = (entries ?? []).filter((each) => `${each.method} ${each.path} ${each.status} ${each.faults.join(" ")}`.toLowerCase().includes(wanted)).reverse();
  const columns: Column<Entry>[] = [
    { name: "Ago", of: (e) => `${Math.max(0, Math.round(now.value / 1000 - e.time))} s`, width: "5rem" },
    { name: "Method", of: (e) => e.method, width: "5rem" },
    { name: "Path", of: (e) => <span title={e.query}>{e.path}</span>, width: "minmax(0, 4fr)" },
    { name: "Status", of: (e) => <State state={e.status ? String(e.status) : "dropped"} healthy={e.status > 0 && e.status < 400} />, sort: (e) => e.status, width: "6rem" },
    { name: "Took", of: (e) => `${(e.seconds * 1000).toFixed(1)} ms`, sort: (e) => e.seconds, width: "6rem" },
    { name: "User", of: (e) => e.user || "–", width: "7rem" },
    { name: "Faults", of: (e) => e.faults.join(", ") },
  ];
  return (
    <>
      {problem && <p class="bad">{problem}</p>}
      <p class="filter"><label>Filter <input type="search" value={wanted} onInput={(event) => amend({ q: event.currentTarget.value })} /></label> <span class="faint">{rows.length} of the newest {entries?.length ?? 0} requests</span></p>
      <Table label="Journal" rows={rows} columns={columns} id={(e) => String(e.number)} empty="No request matches." />
      <Command text={raw(name, "journal?limit=500")} />
    </>
  );
}

function World({ name }: { name: string }) {
  const [tables, problem] = usePolled<Entities[]>(at(name, "tables"));
  return (
    <>
      {problem && <p class="bad">{problem}</p>}
      {(tables ?? []).map((each) => {
        const columns: Column<string[]>[] = each.columns.map((title, index) => ({
          name: title, of: (row) => (title === "Power" || title === "Status" ? <State state={row[index] ?? ""} healthy={/^(running|on|SUCCEEDED)$/i.test(row[index] ?? "") || null} /> : row[index] || <span class="faint">–</span>), sort: (row) => row[index] ?? "",
        }));
        return <section key={each.name}><h2>{each.name} <small>{each.rows.length}</small></h2><Table label={each.name} rows={each.rows.map((row, index) => [...row, String(index)])} columns={columns} id={(row) => row[row.length - 1]!} empty="There are none." /></section>;
      })}
      <Command text={raw(name, "tables")} />
    </>
  );
}
