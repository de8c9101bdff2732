// The clusters that the user may see. Everything on a page that shows them shares one subscription.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { subscribe } from "./stream";

export type Line = {
  kind: string; namespace: string; name: string; healthy: boolean | null; state: string; cause: string;
  // Not in the brief form, which is enough for a list of names.
  version: string; machines: number; ready: number; desired: number; since: string;
  at: { kind: string; namespace: string; name: string; apiVersion: string } | null;
};
type Clusters = { clusters: Line[]; problem: string; denied: string; reading: boolean };

export const isSick = (line: Line): boolean => line.healthy === false || Boolean(line.cause);

class Shared {
  readonly state = signal<{ content: Clusters; brief: boolean } | null>(null);
  readonly error = signal("");
  #users = { brief: 0, whole: 0 };
  #open: { brief: boolean; end: () => void } | null = null;

  constructor(private readonly namespace: string) {}

  /** What comes back ends it. */
  use(brief: boolean): () => void {
    const form = brief ? "brief" : "whole";
    this.#users[form]++;
    this.#settle();
    return () => {
      this.#users[form]--;
      // A page that is left for another one is gone before the next one is there.
      setTimeout(() => this.#settle());
    };
  }

  #settle(): void {
    const before = this.#open;
    if (!this.#users.brief && !this.#users.whole) {
      before?.end();
      this.#open = null;
      this.state.value = null;
      return;
    }
    const brief = !this.#users.whole;
    if (before?.brief === brief) return;
    // The one before stays until the next one has something to show.
    const ends = [subscribe("overview", { namespace: this.namespace, brief }, (message: any) => {
      for (const end of ends.splice(1)) end();
      this.error.value = message.error ?? "";
      if (!message.error) this.state.value = { content: message, brief };
    })];
    if (before) ends.push(before.end);
    this.#open = { brief, end: () => { for (const end of ends) end(); } };
  }
}

const shared = new Map<string, Shared>();

/** Of one namespace, or with '' of all. `brief`: names and health alone. */
export function useClusters(namespace: string, { brief = false, wanted = true } = {}): [Clusters | null, string] {
  const found = shared.get(namespace) ?? new Shared(namespace);
  shared.set(namespace, found);
  useEffect(() => (wanted ? found.use(brief) : undefined), [found, brief, wanted]);
  const state = found.state.value;
  return [state && (brief || !state.brief) ? state.content : null, found.error.value];
}
