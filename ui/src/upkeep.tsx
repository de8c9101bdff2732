// Upgrade, rollout and heal: the work of a command, done by the server of the page as the user.
import { useState } from "preact/hooks";
import { walk } from "./branch";
import { errand } from "./request";
import { Rehearsal } from "./rehearsal";
import { useRows } from "./rows";
import { Command, Confirm, Dialog, report, useOnce } from "./ui";
import type { Props } from "./act";

const CAPI = "cluster.x-k8s.io";

export type Machine = { name: string; vm: string; id: string; state: string; problem: string };

/** All machines of a cluster, those with a problem first; null until they are read. */
export function useMachines(cluster: string, namespace: string): Machine[] | null {
  const [rows] = useRows(CAPI, "machines", namespace, [["spec", "clusterName"], ["spec", "infrastructureRef", "name"], ["spec", "providerID"], "@state", "@problem"]);
  if (!rows) return null;
  const found = rows.filter((each) => each.values[0] === cluster).map((each): Machine => ({
    name: each.name, vm: each.values[1] ?? each.name, id: each.values[2] ?? "", state: each.values[3] ?? "", problem: each.values[4] ?? "",
  }));
  return found.sort((a, b) => Number(Boolean(b.problem)) - Number(Boolean(a.problem)) || a.name.localeCompare(b.name));
}

async function perform(name: string, options: object, after: () => void): Promise<void> {
  try {
    const done = await errand(name, options);
    report(Array.isArray(done) ? done.join("; ") : done, "good");
    after();
  } catch (error) {
    report((error as Error).message);
  }
}

export function Upgrade({ tree, namespace, name, onClose }: Props) {
  const current = tree.version || walk(tree).find((each) => each.version)?.version || "";
  const [version, setVersion] = useState(current);
  const [objects, setObjects] = useState<object[] | null>(null);
  const [busy, once] = useOnce();
  const options = { namespace, name, version };
  const command = `homeport upgrade cluster ${name} --to ${version} --apply -n ${namespace}`;
  return (
    <Dialog title={`Upgrade ${name}`} wide onClose={onClose}>
      <form onSubmit={(event) => {
        event.preventDefault();
        once(() => errand("upgrade", options).then(setObjects).catch((error: Error) => report(error.message)));
      }}>
        <label>Version <input value={version} pattern="v[0-9]+\.[0-9]+\.[0-9]+.*" required onInput={(event) => { setVersion(event.currentTarget.value); setObjects(null); }} /></label>
        <p>It has {current || "no version yet"}. The control plane is upgraded first, machine by machine; the workers follow. Every machine is replaced.</p>
        {objects && <Rehearsal objects={objects} />}
        <Command text={command} />
        <p class="actions">
          <button type="submit" class={objects ? "" : "main"} disabled={version === current} aria-disabled={busy}>Show what will happen</button>
          {objects && <Confirm name="Upgrade" busy={busy} onClick={() => once(() => perform("upgrade", { ...options, apply: true }, onClose))} />}
        </p>
      </form>
    </Dialog>
  );
}

const ROLLED = new Set(["MachineDeployment", "KubeadmControlPlane"]);
const VERBS = [
  { verb: "restart", name: "Restart", text: "Replace all machines even if nothing has changed, as many at a time as the strategy says." },
  { verb: "undo", name: "Undo", text: "Go back to the template of the revision before. Control planes keep no revisions." },
  { verb: "pause", name: "Pause", text: "Replace no more machines until it is resumed." },
  { verb: "resume", name: "Resume", text: "Continue a paused rollout." },
];

export function Rollout({ tree, onClose }: Props) {
  const found = walk(tree).filter((each) => ROLLED.has(each.kind));
  const [chosen, setChosen] = useState(Math.max(0, found.findIndex((each) => each.kind === "MachineDeployment")));
  const [verb, setVerb] = useState("restart");
  const [busy, once] = useOnce();
  const target = found[chosen];
  if (!target) return <Dialog title="Rollout" onClose={onClose}><p>This cluster has no MachineDeployment and no KubeadmControlPlane.</p></Dialog>;
  const verbs = VERBS.filter((each) => each.verb !== "undo" || target.kind === "MachineDeployment");
  const used = verbs.find((each) => each.verb === verb) ?? verbs[0]!;
  return (
    <Dialog title="Rollout" onClose={onClose}>
      <form onSubmit={(event) => {
        event.preventDefault();
        once(() => perform("rollout", { verb: used.verb, kind: target.kind, namespace: target.namespace, name: target.name }, onClose));
      }}>
        <label>What <select value={chosen} onChange={(event) => setChosen(Number(event.currentTarget.value))}>
          {found.map((each, index) => <option key={each.kind + each.name} value={index}>{each.kind} {each.name}</option>)}
        </select></label>
        <fieldset class="choice"><legend>Action</legend>
          {verbs.map((each) => (
            <label key={each.verb}><input type="radio" name="verb" checked={each === used} onChange={() => setVerb(each.verb)} /> <b>{each.name}</b> <span class="faint">{each.text}</span></label>
          ))}
        </fieldset>
        <Command text={`homeport rollout ${used.verb} ${target.kind.toLowerCase()}/${target.name} -n ${target.namespace}`} />
        <button type="submit" class="main" aria-disabled={busy}>{used.name}</button>
      </form>
    </Dialog>
  );
}

export function Heal({ cluster, namespace, machine, onClose }: { cluster: string; namespace: string; machine?: string; onClose: () => void }) {
  const found = useMachines(cluster, namespace);
  const [name, setName] = useState(machine ?? "");
  const [force, setForce] = useState(false);
  const [busy, once] = useOnce();
  const target = found?.find((each) => each.name === name) ?? found?.[0];
  return (
    <Dialog title="Heal" onClose={onClose}>
      {!found && <p class="faint">Reading the machines …</p>}
      {found && !target && <p>This cluster has no machines.</p>}
      {target && (
        <form onSubmit={(event) => {
          event.preventDefault();
          once(() => perform("heal", { namespace, name: target.name, force }, onClose));
        }}>
          <label>Machine <select value={target.name} onChange={(event) => setName(event.currentTarget.value)}>
            {found!.map((each) => <option key={each.name} value={each.name}>{each.name} ({each.problem ? "has a problem" : each.state})</option>)}
          </select></label>
          {target.problem ? <p class="bad">{target.problem}</p> : <p>This machine reports no problem.</p>}
          <p>Its control plane or MachineSet deletes the machine with its VM {target.vm}, and creates another one.</p>
          <label class="check"><input type="checkbox" checked={force} onChange={(event) => setForce(event.currentTarget.checked)} /> Replace it even if it is healthy, or while other control plane machines are not ready</label>
          <Command text={`homeport heal ${target.name} -n ${namespace}${force ? " --force" : ""}`} />
          <button type="submit" class="main" aria-disabled={busy}>Replace the machine</button>
        </form>
      )}
    </Dialog>
  );
}
