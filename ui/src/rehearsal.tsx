// What a change will do, machine by machine: the controllers run on a copy of the objects, and the provider checks it.
import { useEffect, useState } from "preact/hooks";
import { errand } from "./request";
import { Command } from "./ui";

type Row = { action: string; cluster: string; owner: string; machine: string; before: string; after: string; reason: string };
type Check = { kind: string; name: string; check: string; ok: boolean; reason: string; message: string };
type Plan = {
  applied: { kind: string; name: string; result: string; message: string }[]; machines: Row[]; preflight: Check[];
  underWay: string[]; unfinished: string[]; minutes: number; notSimulated: string[];
};

const DONE: Record<string, string> = { replace: "replaced", create: "created", delete: "deleted", change: "changed", leave: "left as is" };
const SIGNS: Record<string, string> = { replace: "busy", create: "good", delete: "bad", change: "busy" };

const counted = (rows: Row[]) => Object.entries(DONE)
  .map(([action, word]) => [rows.filter((each) => each.action === action).length, word] as const)
  .filter(([count]) => count).map(([count, word]) => `${count} ${word}`).join(", ");

export function Rehearsal({ manifest, objects, remove = false }: { manifest?: string; objects?: object[]; remove?: boolean }) {
  const [plan, setPlan] = useState<Plan | null | undefined>(undefined);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let current = true;
    const stop = new AbortController();
    setPlan(undefined);
    setProblem("");
    errand("plan", { manifest, objects, delete: remove }, stop.signal).then((found) => current && setPlan(found)).catch((error: Error) => current && setProblem(error.message));
    return () => { current = false; stop.abort(); };
  }, [manifest, objects, remove]);
  if (plan === null) return null; // no controller of clusters reads this kind
  return (
    <section class="rehearsal" aria-label="What will happen" aria-busy={!plan && !problem}>
      <h2>What will happen</h2>
      {problem && <p class="banner neutral">The change was not rehearsed: {problem}</p>}
      {!plan && !problem && <p class="faint">Rehearsing the change on a copy of the objects … this takes some seconds.</p>}
      {plan && <Shown plan={plan} />}
      <Command text={`homeport plan -f FILE${remove ? " --delete" : ""}`} />
    </section>
  );
}

function Shown({ plan }: { plan: Plan }) {
  const refused = plan.applied.filter((each) => each.result === "refused");
  if (refused.length) return <p class="cause banner" role="alert">{refused.map((each) => each.message).join("; ")}</p>;
  const changed = plan.machines.filter((each) => each.action !== "leave");
  const first = (each: Row) => Number(each.action === "leave"); // what changes comes first
  const owners = [...new Set([...plan.machines].sort((a, b) => first(a) - first(b)).map((each) => `${each.cluster} ${each.owner}`))];
  return (
    <>
      <p class="verdict"><b>{changed.length ? `${plan.machines.length} ${plan.machines.length === 1 ? "machine" : "machines"}: ${counted(plan.machines)}.` : "No machine is created, replaced or deleted."}</b>
        {changed.length > 0 && plan.minutes > 0 && ` In the simulation this takes ${plan.minutes} minutes.`}</p>
      {owners.map((owner) => {
        const rows = plan.machines.filter((each) => `${each.cluster} ${each.owner}` === owner);
        return (
          <div class="scroll" key={owner} tabIndex={0} role="region" aria-label={rows[0]!.owner}>
            <table class="plain">
              <caption>{rows[0]!.owner} <small class="faint">of cluster {rows[0]!.cluster}: {counted(rows)}</small></caption>
              <thead><tr><th>Action</th><th>Machine</th><th>Version</th><th>Why</th></tr></thead>
              <tbody>{rows.slice(0, 100).map((row, index) => (
                <tr key={row.machine || index}>
                  <td><span class={`state ${SIGNS[row.action] ?? ""}`}>{row.action}</span></td>
                  <td>{row.machine || "new machine"}</td>
                  <td>{row.before && row.after && row.before !== row.after ? `${row.before} → ${row.after}` : row.after || row.before}</td>
                  <td>{row.reason}</td>
                </tr>
              ))}</tbody>
            </table>
            {rows.length > 100 && <p class="faint">and {rows.length - 100} more</p>}
          </div>
        );
      })}
      <Checks found={plan.preflight} />
      <Notes title="Under way already, without this change" found={plan.underWay} />
      <Notes title="The simulation stops here" found={plan.unfinished} />
      <details><summary class="faint">What was not simulated</summary><ul>{plan.notSimulated.map((each) => <li key={each}>{each}</li>)}</ul></details>
    </>
  );
}

function Checks({ found }: { found: Check[] }) {
  if (!found.length) return null;
  const failed = found.filter((each) => !each.ok);
  return (
    <div class="checks">
      <h3>Checks at the provider <small class="faint">{failed.length ? `${failed.length} of ${found.length} failed` : `all ${found.length} passed`}</small></h3>
      <ul>{[...failed, ...found.filter((each) => each.ok)].map((each) => (
        <li key={each.kind + each.name + each.check}>
          <span class={`state ${each.ok ? "good" : "bad"}`}>{each.ok ? "passed" : "failed"}</span> {each.check} <small class="faint">{each.kind} {each.name}</small>
          {!each.ok && <div class="bad">{each.message || each.reason}</div>}
        </li>
      ))}</ul>
    </div>
  );
}

function Notes({ title, found }: { title: string; found: string[] }) {
  if (!found.length) return null;
  return <><h3>{title}</h3><ul>{found.map((each) => <li key={each}>{each}</li>)}</ul></>;
}
