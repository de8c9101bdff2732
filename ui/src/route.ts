// Everything that a page shows is in its address: #/cluster/default/harbour?tab=tree
import { effect, signal, untracked } from "@preact/signals";

export type Route = { parts: string[]; query: URLSearchParams };

/** Addresses are typed and cut off: what can't be decoded stays as it is. */
function decoded(part: string): string {
  try { return decodeURIComponent(part); } catch { return part; }
}

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { parts: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

const isCode = () => location.hash.startsWith("#code="); // of a link to log in: no page
let last = isCode() ? "" : location.hash;
export const route = signal<Route>(read());
/** A sentence about what the user typed and has not applied; '': nothing. It is lost on another page. */
export const unsaved = signal("");
/** Continues what the user began, if they give that up. */
export const leaving = signal<(() => void) | null>(null);
// Each entry of the history has a number: to stay is to go back, or forward again, to that of this page.
let position = typeof history.state === "number" ? history.state : 0;
history.replaceState(position, "");
const place = (): number => (typeof history.state === "number" ? history.state : position + 1);

addEventListener("beforeunload", (event) => { if (unsaved.value) event.preventDefault(); });
addEventListener("hashchange", () => {
  if (isCode()) return;
  if (unsaved.value && read().parts.join("/") !== route.value.parts.join("/")) { leaving.value = reread; return; }
  leaving.value = null; // the user went back to this page
  reread();
});
// Nothing is left to lose, because the user gave it up or because it was applied meanwhile: the question is answered.
effect(() => {
  if (unsaved.value) return;
  const go = leaving.peek();
  leaving.value = null;
  if (go) untracked(go);
});

/** Does it at once, or after the user has answered. */
export function abandon(action: () => void): void {
  if (unsaved.value) leaving.value = action;
  else action();
}

export function stay(): void {
  leaving.value = null;
  if (location.hash === last) return;
  const steps = position - place();
  if (steps) history.go(steps);
  else history.replaceState(position, "", last);
}

/** The address of the page, without a code that has replaced it. */
export const held = (): string => last;

/** After the address was changed without an event. */
export function reread(): void {
  last = location.hash;
  position = place();
  if (history.state !== position) history.replaceState(position, "");
  route.value = read();
}

export function href(parts: string[], query: Record<string, string> = {}): string {
  const kept = Object.entries(query).filter(([, value]) => value);
  const text = kept.length ? "?" + new URLSearchParams(kept).toString() : "";
  return "#/" + parts.map(encodeURIComponent).join("/") + text;
}

export function go(parts: string[], query: Record<string, string> = {}): void {
  location.hash = href(parts, query);
}

/** Changes the query of this page and leaves no entry in the history. */
export function amend(query: Record<string, string>): void {
  const next = new URLSearchParams(route.value.query);
  for (const [name, value] of Object.entries(query)) value ? next.set(name, value) : next.delete(name);
  const text = next.toString();
  history.replaceState(position, "", href(route.value.parts) + (text ? "?" + text : ""));
  reread();
}
