// The namespace that the pages show; '' is all of them.
import { effect, signal } from "@preact/signals";
import { route, amend } from "./route";

export const home = signal<string>(""); // of the kubeconfig, for users who may not see all namespaces
export const space = signal<string>(route.value.query.get("ns") ?? "");
export const spaces = signal<string[]>([]);

// The address has it always: on the way back, after a reload, and in a link that somebody else opens.
effect(() => {
  const named = route.value.query.get("ns");
  if (named !== null) space.value = named;
  else if (space.peek()) amend({ ns: space.peek() });
});

export function choose(name: string): void {
  space.value = name;
  amend({ ns: name });
}
