// The namespace that the pages show; '' is all of them.
import { signal } from "@preact/signals";
import { route, amend } from "./route";

export const home = signal<string>(""); // of the kubeconfig, for users who may not see all namespaces
export const space = signal<string>(route.value.query.get("ns") ?? "");
export const spaces = signal<string[]>([]);

export function choose(name: string): void {
  space.value = name;
  amend({ ns: name });
}
