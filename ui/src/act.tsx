// Actions on a cluster. Each shows its command, and what the user lacks if they may not.
import { useEffect, useState } from "preact/hooks";
import { byKind, path, type Kind } from "./kind";
import { get, may, Refusal, send } from "./request";
import { clusterOf, spaceOf, type Branch } from "./branch";
import { Command, Dialog, report, State, useOnce } from "./ui";
import { Scale } from "./scale";
import { Heal, Rollout, Upgrade, useMachines } from "./upkeep";

export type Props = { kind: string; apiVersion: string; namespace: string; name: string; tree: Branch; onClose: () => void };
const CAPI = "cluster.x-k8s.io";
const PAUSED = new Set(["Cluster", "TenantCluster"]);

const full = (plural: string, group: string) => plural.replace(/^[^/]+/, (each) => each + (group ? `.${group}` : ""));

export function Actions(props: Omit<Props, "onClose">) {
  const [open, setOpen] = useState("");
  const kind = byKind(props.kind, props.apiVersion);
  const space = spaceOf(props.tree);
  const [missing, setMissing] = useState<Record<string, string> | null>(null);
  useEffect(() => {
    if (!kind) return;
    const asked = async (verb: string, group: string, plural: string, namespace: string, name = "") =>
      (await may(verb, group, plural, namespace, name).catch(() => false)) ? "" : `You may not ${verb} ${full(plural, group)} in namespace ${namespace}`;
    void Promise.all([
      asked("patch", kind.group, kind.plural, props.namespace, props.name), asked("delete", kind.group, kind.plural, props.namespace, props.name),
      asked("patch", CAPI, "machines", space), asked("patch", CAPI, "machinedeployments", space),
      // The numbers of a Cluster without a ClusterClass are in the objects below it.
      props.kind === "Cluster" ? asked("patch", CAPI, "machinedeployments/scale", space) : asked("patch", kind.group, kind.plural, props.namespace, props.name),
    ]).then(([patch, remove, machines, deployments, scale]) => setMissing({ patch, remove, machines, deployments, scale: patch && scale }));
  }, [kind?.plural, props.namespace, props.name, space]);
  if (!kind || !missing) return <p class="actions" />;
  const close = { onClose: () => setOpen("") };
  return (
    <p class="actions">
      <Button name="Scale" lacks={missing.scale} onClick={() => setOpen("scale")} />
      <Button name="Upgrade" lacks={missing.patch} onClick={() => setOpen("upgrade")} />
      <Button name="Rollout" lacks={missing.deployments} onClick={() => setOpen("rollout")} />
      <Button name="Heal" lacks={missing.machines} onClick={() => setOpen("heal")} />
      {PAUSED.has(props.kind) && <Button name="Pause or resume" lacks={missing.patch} onClick={() => setOpen("pause")} />}
      <Button name="Delete" danger lacks={missing.remove} onClick={() => setOpen("delete")} />
      {open === "scale" && <Scale {...props} of={kind} {...close} />}
      {open === "upgrade" && <Upgrade {...props} {...close} />}
      {open === "rollout" && <Rollout {...props} {...close} />}
      {open === "heal" && <Heal cluster={clusterOf(props.tree)} namespace={space} {...close} />}
      {open === "pause" && <Pause {...props} of={kind} {...close} />}
      {open === "delete" && <Delete {...props} of={kind} {...close} />}
    </p>
  );
}

function Button({ name, lacks = "", danger = false, onClick }: { name: string; lacks?: string; danger?: boolean; onClick: () => void }) {
  return <button type="button" class={danger ? "danger" : ""} disabled={Boolean(lacks)} title={lacks} onClick={onClick}>{name}</button>;
}

export async function attempt(work: () => Promise<unknown>, done: string, after: () => void): Promise<void> {
  try {
    await work();
    report(done, "good");
    after();
  } catch (error) {
    report(error instanceof Refusal ? error.message : String(error));
  }
}

const patch = (kind: Kind, namespace: string, name: string, body: object, sub = "") =>
  send("PATCH", path(kind, namespace, name, sub) + "?fieldManager=homeport-dashboard", JSON.stringify(body), "application/merge-patch+json");

function Pause({ kind, namespace, name, of, onClose }: Props & { of: Kind }) {
  const [paused, setPaused] = useState<boolean | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => { get(path(of, namespace, name)).then((found) => setPaused(Boolean(found.spec?.paused))).catch((error: Error) => setProblem(error.message)); }, []);
  const [busy, once] = useOnce();
  const verb = paused ? "Resume" : "Pause";
  return (
    <Dialog title={paused === null ? `Pause or resume ${name}` : `${verb} ${name}`} onClose={onClose}>
      {problem && <p class="bad">{problem}</p>}
      {paused === null && !problem && <p class="faint">Reading the cluster …</p>}
      {paused !== null && (
        <form onSubmit={(event) => {
          event.preventDefault();
          once(() => attempt(() => patch(of, namespace, name, { spec: { paused: !paused } }), `${kind} ${name} is ${paused ? "resumed" : "paused"}`, onClose));
        }}>
          <p>{paused ? "It is paused: it keeps running, and Homeport changes nothing of it. After this, Homeport makes up for what was missed." : "A paused cluster keeps running; Homeport changes nothing of it, and replaces no failed machine, until it is resumed."}</p>
          <Command text={`kubectl patch -n ${namespace} ${of.plural}.${of.group} ${name} --type merge -p '{"spec":{"paused":${!paused}}}'`} />
          <button type="submit" class="main" aria-disabled={busy}>{verb}</button>
        </form>
      )}
    </Dialog>
  );
}

function Delete({ tree, kind, namespace, name, of, onClose }: Props & { of: Kind }) {
  const [typed, setTyped] = useState("");
  const [busy, once] = useOnce();
  const machines = useMachines(clusterOf(tree), spaceOf(tree));
  return (
    <Dialog title={`Delete ${kind} ${name}`} wide onClose={onClose}>
      {!machines && <p class="faint">Reading the machines …</p>}
      {machines?.length === 0 && <p>It has no machines.</p>}
      {machines && machines.length > 0 && (
        <>
          <p><b>{machines.length === 1 ? "1 VM and its disks are deleted:" : `${machines.length} VMs and their disks are deleted:`}</b></p>
          <div class="scroll doomed" tabIndex={0} role="region" aria-label="VMs that are deleted">
            <table class="plain">
              <thead><tr><th>VM</th><th>ID at the provider</th><th>State</th></tr></thead>
              <tbody>{machines.slice(0, 100).map((each) => (
                <tr key={each.name}><td>{each.vm}</td><td>{each.id || <span class="faint">not created yet</span>}</td><td><State state={each.state} /></td></tr>
              ))}</tbody>
            </table>
            {machines.length > 100 && <p class="faint">and {machines.length - 100} more</p>}
          </div>
        </>
      )}
      <form onSubmit={(event) => {
        event.preventDefault();
        once(() => attempt(() => send("DELETE", path(of, namespace, name)), `${kind} ${name} is being deleted`, onClose));
      }}>
        <label>Type <b>{name}</b> to confirm <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} autocomplete="off" /></label>
        <Command text={`kubectl delete -n ${namespace} ${of.plural}.${of.group} ${name}`} />
        <button type="submit" class="danger" disabled={typed !== name} aria-disabled={busy}>Delete</button>
      </form>
    </Dialog>
  );
}
