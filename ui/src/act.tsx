// Actions on a cluster. Each shows its command, and what the user lacks if they may not.
import { useEffect, useState } from "preact/hooks";
import { byKind, path, type Kind } from "./kind";
import { may, Refusal, send } from "./request";
import { Command, Dialog, ObjectLink, report } from "./ui";
import type { Branch } from "./page/cluster";

type Props = { kind: string; apiVersion: string; namespace: string; name: string; tree: Branch };
const SCALED = new Set(["MachineDeployment", "KubeadmControlPlane", "K0sControlPlane", "MachinePool", "MachineSet"]);
const walk = (branch: Branch): Branch[] => [branch, ...branch.children.flatMap(walk)];

export function Actions(props: Props) {
  const [open, setOpen] = useState("");
  const kind = byKind(props.kind, props.apiVersion);
  const [rights, setRights] = useState<{ patch: boolean; remove: boolean } | null>(null);
  useEffect(() => {
    if (!kind) return;
    const asked = (verb: string) => may(verb, kind.group, kind.plural, props.namespace, props.name).catch(() => false);
    void Promise.all([asked("patch"), asked("delete")]).then(([patch, remove]) => setRights({ patch, remove }));
  }, [kind?.plural, props.namespace, props.name]);
  if (!kind || !rights) return <p class="actions" />;
  const lacks = (verb: string) => `You may not ${verb} ${kind.plural}${kind.group ? "." + kind.group : ""} in namespace ${props.namespace}`;
  const pausable = props.kind === "Cluster";
  return (
    <p class="actions">
      <Button name="Scale" onClick={() => setOpen("scale")} />
      <Button name="Upgrade" lacks={rights.patch ? "" : lacks("patch")} onClick={() => setOpen("upgrade")} />
      {pausable && <Button name="Pause or resume" lacks={rights.patch ? "" : lacks("patch")} onClick={() => setOpen("pause")} />}
      <Button name="Delete" danger lacks={rights.remove ? "" : lacks("delete")} onClick={() => setOpen("delete")} />
      {open === "scale" && <Scale {...props} onClose={() => setOpen("")} />}
      {open === "upgrade" && <Upgrade {...props} of={kind} onClose={() => setOpen("")} />}
      {open === "pause" && <Pause {...props} of={kind} onClose={() => setOpen("")} />}
      {open === "delete" && <Delete {...props} of={kind} onClose={() => setOpen("")} />}
    </p>
  );
}

function Button({ name, lacks = "", danger = false, onClick }: { name: string; lacks?: string; danger?: boolean; onClick: () => void }) {
  return <button type="button" class={danger ? "danger" : ""} disabled={Boolean(lacks)} title={lacks} onClick={onClick}>{name}</button>;
}

async function attempt(work: () => Promise<unknown>, done: string, after: () => void): Promise<void> {
  try {
    await work();
    report(done, "good");
    after();
  } catch (error) {
    report(error instanceof Refusal ? error.message : String(error));
  }
}

const patch = (kind: Kind, namespace: string, name: string, body: object, sub = "") =>
  send("PATCH", path(kind, namespace, name, sub), JSON.stringify(body), "application/merge-patch+json");

function Scale({ tree, onClose }: Props & { onClose: () => void }) {
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

function Upgrade({ tree, kind: name, namespace, name: cluster, of, onClose }: Props & { of: Kind; onClose: () => void }) {
  const [version, setVersion] = useState(tree.version || walk(tree).find((each) => each.version)?.version || "");
  const flag = namespace ? ` -n ${namespace}` : "";
  const text = `homeport upgrade cluster ${cluster} --to ${version}${flag}`;
  const body = name === "TenantCluster" ? { spec: { kubernetesVersion: version } } : { spec: { topology: { version } } };
  const direct = name === "TenantCluster" || name === "Cluster";
  return (
    <Dialog title={`Upgrade ${cluster}`} onClose={onClose}>
      <form onSubmit={(event) => {
        event.preventDefault();
        void attempt(() => patch(of, namespace, cluster, body), `${name} ${cluster}: upgrade to ${version} begins`, onClose);
      }}>
        <label>Version <input value={version} pattern="v[0-9]+\.[0-9]+\.[0-9]+" required onInput={(event) => setVersion(event.currentTarget.value)} /></label>
        <p>The control plane is upgraded first, machine by machine; the workers follow. Every machine is replaced.</p>
        {name === "Cluster" && <p class="faint">For clusters of a ClusterClass. Others name their version in the control plane and the MachineDeployments: use the command.</p>}
        <Command text={text} />
        <button type="submit" class="main" disabled={!direct}>Upgrade</button>
      </form>
    </Dialog>
  );
}

function Pause({ namespace, name, of, onClose }: Props & { of: Kind; onClose: () => void }) {
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

function Delete({ tree, kind, namespace, name, of, onClose }: Props & { of: Kind; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const machines = walk(tree).filter((each) => each.kind === "Machine" || each.kind === "Group");
  return (
    <Dialog title={`Delete ${kind} ${name}`} onClose={onClose}>
      <p><b>All machines of the cluster and their disks are deleted:</b></p>
      <ul class="doomed">{machines.slice(0, 50).map((each) => (
        <li key={each.name}><ObjectLink {...each} label={each.name} /> {each.state}</li>
      ))}</ul>
      {machines.length === 0 && <p>It has no machines.</p>}
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
