// Actions on a cluster. Each shows its command, and what the user lacks if they may not.
import { useEffect, useState } from "preact/hooks";
import { byKind, path, type Kind } from "./kind";
import { may, Refusal, send } from "./request";
import { clusterOf, spaceOf, walk, type Branch } from "./branch";
import { Command, Dialog, report, State } from "./ui";
import { Heal, Rollout, Upgrade, useMachines } from "./upkeep";

export type Props = { kind: string; apiVersion: string; namespace: string; name: string; tree: Branch; onClose: () => void };
const CAPI = "cluster.x-k8s.io";
const SCALED = new Set(["MachineDeployment", "KubeadmControlPlane", "K0sControlPlane", "MachinePool", "MachineSet"]);

export function Actions(props: Omit<Props, "onClose">) {
  const [open, setOpen] = useState("");
  const kind = byKind(props.kind, props.apiVersion);
  const space = spaceOf(props.tree);
  const [missing, setMissing] = useState<Record<string, string> | null>(null);
  useEffect(() => {
    if (!kind) return;
    const asked = async (verb: string, group: string, plural: string, namespace: string, name = "") =>
      (await may(verb, group, plural, namespace, name).catch(() => false)) ? "" : `You may not ${verb} ${plural}${group ? "." + group : ""} in namespace ${namespace}`;
    void Promise.all([
      asked("patch", kind.group, kind.plural, props.namespace, props.name), asked("delete", kind.group, kind.plural, props.namespace, props.name),
      asked("patch", CAPI, "machines", space), asked("patch", CAPI, "machinedeployments", space),
    ]).then(([patch, remove, machines, deployments]) => setMissing({ patch, remove, machines, deployments }));
  }, [kind?.plural, props.namespace, props.name, space]);
  if (!kind || !missing) return <p class="actions" />;
  const close = { onClose: () => setOpen("") };
  return (
    <p class="actions">
      <Button name="Scale" lacks={missing.deployments} onClick={() => setOpen("scale")} />
      <Button name="Upgrade" lacks={missing.patch} onClick={() => setOpen("upgrade")} />
      <Button name="Rollout" lacks={missing.deployments} onClick={() => setOpen("rollout")} />
      <Button name="Heal" lacks={missing.machines} onClick={() => setOpen("heal")} />
      {props.kind === "Cluster" && <Button name="Pause or resume" lacks={missing.patch} onClick={() => setOpen("pause")} />}
      <Button name="Delete" danger lacks={missing.remove} onClick={() => setOpen("delete")} />
      {open === "scale" && <Scale {...props} {...close} />}
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

function Scale({ tree, onClose }: Props) {
  const found = walk(tree).filter((each) => SCALED.has(each.kind) && each.replicas && byKind(each.kind, each.apiVersion));
  const [chosen, setChosen] = useState(0);
  const target = found[chosen];
  const current = Number(target?.replicas.split(" of ")[1] ?? 0);
  const [count, setCount] = useState<number | null>(null);
  if (!target) return <Dialog title="Scale" onClose={onClose}><p>Nothing in this cluster has a number of replicas. For a tenant cluster or a cluster deployment, edit its object.</p></Dialog>;
  const kind = byKind(target.kind, target.apiVersion)!;
  const wanted = count ?? current;
  return (
    <Dialog title="Scale" onClose={onClose}>
      <form onSubmit={(event) => {
        event.preventDefault();
        void attempt(() => patch(kind, target.namespace, target.name, { spec: { replicas: wanted } }, "scale"), `${target.kind} ${target.name}: ${wanted} replicas desired`, onClose);
      }}>
        <label>What <select value={chosen} onChange={(event) => { setChosen(Number(event.currentTarget.value)); setCount(null); }}>
          {found.map((each, index) => <option key={each.name + each.kind} value={index}>{each.kind} {each.name}</option>)}
        </select></label>
        <label>Replicas <input type="number" min={0} max={1000} value={wanted} onInput={(event) => setCount(Number(event.currentTarget.value))} /></label>
        <p>{wanted > current ? `${wanted - current} machines will be created.` : wanted < current ? `${current - wanted} machines will be deleted.` : "Nothing changes."}</p>
        <Command text={`kubectl scale -n ${target.namespace} ${kind.plural}.${kind.group}/${target.name} --replicas ${wanted}`} />
        <button type="submit" class="main" disabled={wanted === current}>Scale</button>
      </form>
    </Dialog>
  );
}

function Pause({ namespace, name, of, onClose }: Props & { of: Kind }) {
  const set = (paused: boolean) =>
    void attempt(() => patch(of, namespace, name, { spec: { paused } }), `Cluster ${name} is ${paused ? "paused" : "resumed"}`, onClose);
  return (
    <Dialog title={`Pause or resume ${name}`} onClose={onClose}>
      <p>A paused cluster keeps running; Homeport changes nothing of it until it is resumed.</p>
      <Command text={`kubectl patch -n ${namespace} cluster ${name} --type merge -p '{"spec":{"paused":true}}'`} />
      <button type="button" class="main" onClick={() => set(true)}>Pause</button> <button type="button" onClick={() => set(false)}>Resume</button>
    </Dialog>
  );
}

function Delete({ tree, kind, namespace, name, of, onClose }: Props & { of: Kind }) {
  const [typed, setTyped] = useState("");
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
        void attempt(() => send("DELETE", path(of, namespace, name)), `${kind} ${name} is being deleted`, onClose);
      }}>
        <label>Type <b>{name}</b> to confirm <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} autocomplete="off" /></label>
        <Command text={`kubectl delete -n ${namespace} ${of.plural}.${of.group} ${name}`} />
        <button type="submit" class="danger" disabled={typed !== name}>Delete</button>
      </form>
    </Dialog>
  );
}
