// The kinds that the API server serves.
import { signal } from "@preact/signals";
import { get, send } from "./request";

export type Kind = { group: string; version: string; kind: string; plural: string; namespaced: boolean; verbs: string[] };

export const kinds = signal<Kind[]>([]);

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/** All kinds in two requests; servers before Kubernetes 1.27 are asked group by group. */
export async function loadKinds(): Promise<void> {
  const found: Kind[] = [];
  for (const root of ["/api", "/apis"]) {
    const answer = JSON.parse((await send("GET", root, "", "application/json", AGGREGATED)).text);
    if (answer.kind !== "APIGroupDiscoveryList") { found.push(...(await byGroup(root, answer))); continue; }
    for (const group of answer.items ?? []) {
      const seen = new Set<string>();
      for (const version of group.versions ?? []) for (const each of version.resources ?? []) {
        if (!each.verbs.includes("list") || seen.has(each.resource)) continue;
        seen.add(each.resource);
        found.push({
          group: group.metadata?.name ?? "", version: version.version, kind: each.responseKind.kind, plural: each.resource,
          namespaced: each.scope === "Namespaced", verbs: each.verbs,
        });
      }
    }
  }
  found.sort((a, b) => a.kind.localeCompare(b.kind) || a.group.localeCompare(b.group));
  kinds.value = found;
}

async function byGroup(root: string, answer: any): Promise<Kind[]> {
  const paths: string[] = root === "/api" ? ["/api/v1"] : answer.groups.map((each: any) => `/apis/${each.preferredVersion.groupVersion}`);
  const found: Kind[] = [];
  await Promise.all(paths.map(async (path) => {
    const [group = "", version = "v1"] = root === "/api" ? [] : path.split("/").slice(2);
    for (const each of (await get(path)).resources ?? []) {
      if (each.name.includes("/") || !each.verbs.includes("list")) continue;
      found.push({ group, version, kind: each.kind, plural: each.name, namespaced: each.namespaced, verbs: each.verbs });
    }
  }));
  return found;
}

export const byPlural = (plural: string, group: string): Kind | undefined =>
  kinds.value.find((each) => each.plural === plural && each.group === group);

export const byKind = (kind: string, apiVersion: string): Kind | undefined => {
  const group = apiVersion.includes("/") ? apiVersion.split("/")[0]! : "";
  return kinds.value.find((each) => each.kind === kind && each.group === group);
};

export function path(kind: Kind, namespace: string, name = "", sub = ""): string {
  const root = kind.group ? `/apis/${kind.group}/${kind.version}` : `/api/${kind.version}`;
  const space = kind.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${root}${space}/${kind.plural}${name ? "/" + encodeURIComponent(name) : ""}${sub ? "/" + sub : ""}`;
}
