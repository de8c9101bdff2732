// The tree of a cluster, as the server sends it.
export type Branch = {
  kind: string; name: string; namespace: string; apiVersion: string; role: string; healthy: boolean | null; state: string;
  version: string; replicas: string; problem: string; ageSeconds: number | null; children: Branch[];
  conditions: { type: string; status: string; reason?: string; message?: string; lastTransitionTime?: string }[];
};

export const walk = (branch: Branch): Branch[] => [branch, ...branch.children.flatMap(walk)];
const inner = (tree: Branch) => walk(tree).find((each) => each.kind === "Cluster") ?? tree;
/** Name and namespace of the Cluster: those of a platform's object are others. */
export const clusterOf = (tree: Branch) => inner(tree).name;
export const spaceOf = (tree: Branch) => inner(tree).namespace;
