// Subscriptions of this tab, through the worker that all tabs share; without one, through a socket of its own.
import { effect, signal } from "@preact/signals";
import { Socket, type Link, type Message } from "./socket";
import { back, key, ended } from "./session";

export const link = signal<Link>("connecting");
/** What the page shows is from that time (seconds since 1970): the API server does not answer. */
export const stale = signal<{ since: number; why: string } | null>(null);
type Handler = (message: Message) => void;

const handlers = new Map<number, Handler>();
let last = 0;
let post: ((message: object) => void) | null = null;

function receive(message: Message & { link?: Link; why?: string; stale?: { since: number; why: string } | null }): void {
  if (message.link !== undefined) {
    link.value = message.link;
    if (message.link !== "open") stale.value = null; // the link itself tells it
    if (message.link === "ended") ended(message.why || undefined);
    return;
  }
  if (message.stale !== undefined) stale.value = message.stale;
  else handlers.get(message.id ?? 0)?.(message);
}

/** The one script that the page may start, whoever asks. */
function only(url: string): string {
  if (url !== "worker.js") throw new TypeError(`${url} is not a script of this page`);
  return url;
}

const SEEN = 60_000; // milliseconds

export function connect(): void {
  setInterval(() => { if (!document.hidden) post?.({ seen: true }); }, SEEN);
  effect(() => { if (back.value) post?.({ key: key() }); });
  if ("SharedWorker" in globalThis) {
    const policy = (globalThis as any).trustedTypes?.createPolicy("homeport", { createScriptURL: only });
    const url = policy ? policy.createScriptURL("worker.js") : "worker.js";
    const worker = new SharedWorker(url as string, { type: "module", name: "homeport" });
    worker.port.onmessage = (event) => receive(event.data as Message);
    post = (message) => worker.port.postMessage(message);
    post({ key: key() });
    addEventListener("pagehide", () => post?.({ bye: true }));
    addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); }); // the worker forgot this tab
    return;
  }
  const url = new URL("stream", location.href);
  url.protocol = url.protocol.replace("http", "ws");
  url.hash = "";
  const socket = new Socket(url.href, key(), receive, (state, why) => receive({ link: state, why }));
  post = (message: any) => {
    if (message.key) socket.use(message.key);
    else if (message.seen) socket.seen();
    else if (message.close) socket.close(message.id);
    else if (message.open) socket.open(message.id, message.open, message.with);
  };
}

/** Opens a subscription; what comes back ends it. */
export function subscribe(name: string, options: object, handler: Handler): () => void {
  const id = ++last;
  handlers.set(id, handler);
  post?.({ id, open: name, with: options });
  return () => {
    handlers.delete(id);
    post?.({ id, close: true });
  };
}
