// Everything that a page shows is in its address: #/cluster/default/harbour?tab=tree
import { signal } from "@preact/signals";

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
addEventListener("hashchange", () => { if (!isCode()) reread(); });

/** The address of the page, without a code that has replaced it. */
export const held = (): string => last;

/** After the address was changed without an event. */
export function reread(): void {
  last = location.hash;
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
  history.replaceState(null, "", href(route.value.parts) + (text ? "?" + text : ""));
  reread();
}
