// Scale: where the number of machines is written depends on the API that the cluster was made with. A platform or a
// ClusterClass owns the objects below it, and takes back what is written there.
import { useEffect, useState } from "preact/hooks";
import { byKind, path, type Kind } from "./kind";
import { get, send } from "./request";
import { walk, type Branch } from "./branch";
import { Command, Dialog, useOnce } from "./ui";
import { attempt, type Props } from "./act";

type Target = { label: string; current: number; least: number; most: number; kind: Kind; namespace: string; name: string; patch: (count: number) => object; json?: boolean; sub?: string };
type Owner = { kind: Kind; namespace: string; name: string };

const SCALED = new Set(["MachineDeployment", "KubeadmControlPlane", "K0sControlPlane", "MachinePool", "MachineSet"]);
const desired = (branch: Branch | undefined) => Number(branch?.replicas.split(" of ")[1] ?? 0);
const MOST = 5000;

/** What stands in the object that the user wrote; null: in the objects below it. */
function written(object: any, owner: Owner, tree: Branch): Target[] | null {
  const below = walk(tree);
  const workers = below.filter((each) => each.kind === "MachineDeployment");
  const spec = object.spec ?? {};
  const common = { ...owner, least: 0, most: MOST };
  if (owner.kind.kind === "TenantCluster") {
    const pools: any[] = spec.workerPools ?? [];
    return [
      { ...common, label: "Workers", current: spec.workers?.replicas ?? desired(workers.find((each) => each.name.endsWith("-workers")) ?? workers[0]), patch: (replicas) => ({ spec: { workers: { replicas } } }) },
      ...pools.map((each, index): Target => ({
        ...common, label: `Workers of pool ${each.name}`, current: each.replicas ?? desired(workers.find((one) => one.name.endsWith(`-${each.name}`))), json: true,
        patch: (count) => [{ op: "test", path: `/spec/workerPools/${index}/name`, value: each.name }, { op: "add", path: `/spec/workerPools/${index}/replicas`, value: count }],
      })),
      ...(spec.controlPlane?.replicas === undefined ? [] : [{ ...common, least: 1, most: 3, label: "Control plane", current: spec.controlPlane.replicas, patch: (replicas: number) => ({ spec: { controlPlane: { replicas } } }) }]),
    ];
  }
  if (owner.kind.kind === "ClusterDeployment") {
    const config = spec.config ?? {};
    return [
      { ...common, label: "Workers", current: config.workersNumber ?? desired(workers[0]), patch: (workersNumber) => ({ spec: { config: { workersNumber } } }) },
      ...(config.controlPlaneNumber === undefined ? [] : [{ ...common, least: 1, label: "Control plane", current: config.controlPlaneNumber, patch: (controlPlaneNumber: number) => ({ spec: { config: { controlPlaneNumber } } }) }]),
    ];
  }
  const topology = spec.topology;
  if (!topology?.classRef) return null;
  const groups: [string, any][] = (["machineDeployments", "machinePools"] as const).flatMap((place) => (topology.workers?.[place] ?? []).map((each: any, index: number): [string, any] => [`/spec/topology/workers/${place}/${index}`, each]));
  return [
    ...(topology.controlPlane?.replicas === undefined ? [] : [{ ...common, least: 1, label: "Control plane", current: topology.controlPlane.replicas, patch: (replicas: number) => ({ spec: { topology: { controlPlane: { replicas } } } }) }]),
    ...groups.map(([place, each]): Target => ({
      ...common, label: `Workers ${each.name}`, current: each.replicas ?? desired(workers.find((one) => one.name.includes(`-${each.name}-`))), json: true,
      patch: (count) => [{ op: "test", path: `${place}/name`, value: each.name }, { op: "add", path: `${place}/replicas`, value: count }],
    })),
  ];
}

/** Workers first: they are scaled more often. */
function below(tree: Branch): Target[] {
  const found = walk(tree).sort((a, b) => Number(a.kind.endsWith("ControlPlane")) - Number(b.kind.endsWith("ControlPlane")));
  return found.flatMap((each): Target[] => {
    const kind = byKind(each.kind, each.apiVersion);
    if (!kind || !SCALED.has(each.kind) || !each.replicas) return [];
    return [{ kind, namespace: each.namespace, name: each.name, label: `${each.kind} ${each.name}`, current: desired(each), least: 0, most: MOST, sub: "scale", patch: (replicas) => ({ spec: { replicas } }) }];
  });
}

function command(target: Target, count: number): string {
  const what = `-n ${target.namespace} ${target.kind.plural}.${target.kind.group}`;
  if (target.sub) return `kubectl scale ${what}/${target.name} --replicas ${count}`;
  return `kubectl patch ${what} ${target.name} --type ${target.json ? "json" : "merge"} -p '${JSON.stringify(target.patch(count))}'`;
}

const machines = (count: number) => (count === 1 ? "1 machine" : `${count} machines`);

export function Scale({ tree, namespace, name, of, onClose }: Props & { of: Kind }) {
  const [found, setFound] = useState<Target[] | null>(null);
  const [problem, setProblem] = useState("");
  const [chosen, setChosen] = useState(0);
  const [count, setCount] = useState<number | null>(null);
  useEffect(() => {
    get(path(of, namespace, name)).then((object) => setFound(written(object, { kind: of, namespace, name }, tree) ?? below(tree))).catch((error: Error) => setProblem(error.message));
  }, []);
  const [busy, once] = useOnce();
  const target = found?.[chosen];
  if (!target) {
    return <Dialog title={`Scale ${name}`} onClose={onClose}>{problem ? <p class="bad">{problem}</p> : <p>{found ? "Nothing in this cluster has a number of replicas." : "Reading the cluster …"}</p>}</Dialog>;
  }
  const wanted = count ?? target.current;
  const change = wanted - target.current;
  return (
    <Dialog title={`Scale ${name}`} onClose={onClose}>
      <form onSubmit={(event) => {
        event.preventDefault();
        const where = `${path(target.kind, target.namespace, target.name, target.sub ?? "")}?fieldManager=homeport-dashboard`;
        const type = target.json ? "application/json-patch+json" : "application/merge-patch+json";
        once(() => attempt(() => send("PATCH", where, JSON.stringify(target.patch(wanted)), type), `${target.label} of ${name}: ${wanted} desired`, onClose));
      }}>
        <label>What <select value={chosen} onChange={(event) => { setChosen(Number(event.currentTarget.value)); setCount(null); }}>
          {found!.map((each, index) => <option key={each.label} value={index}>{each.label}</option>)}
        </select></label>
        <label>Replicas <input type="number" min={target.least} max={target.most} required value={wanted} onInput={(event) => setCount(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))} /></label>
        <p>{change > 0 ? `${machines(change)} will be created.` : change < 0 ? `${machines(-change)} will be deleted, with ${change === -1 ? "its VM and disks" : "their VMs and disks"}.` : "Nothing changes."}</p>
        <Command text={command(target, wanted)} />
        <button type="submit" class="main" disabled={change === 0} aria-disabled={busy}>Scale</button>
      </form>
    </Dialog>
  );
}
