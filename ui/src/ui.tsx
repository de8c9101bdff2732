// Small parts that all pages use.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { byKind } from "./kind";
import { href } from "./route";
import { subscribe } from "./stream";

export const now = signal(Date.now());
setInterval(() => { if (!document.hidden) now.value = Date.now(); }, 1000);

export function age(time: string | null | undefined): string {
  if (!time) return "";
  const seconds = Math.max(0, Math.floor((now.value - Date.parse(time)) / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86400)}d`;
}

export function tone(state: string, healthy?: boolean | null): string {
  if (healthy === true) return "good";
  if (/^(Available|Ready|Running|Provisioned|Bound|Active|True|Succeeded|Healthy)$/.test(state)) return "good";
  if (/Fail|Error|Unavailable|^Not |False|Unknown|Degraded/.test(state)) return "bad";
  return healthy === false || state ? "busy" : "none";
}

export function State({ state, healthy }: { state: string; healthy?: boolean | null }) {
  if (!state) return <span class="faint">–</span>;
  return <span class={`state ${tone(state, healthy)}`}>{state}</span>;
}

export function Bar({ done, of }: { done: number; of: number }) {
  const share = of ? Math.min(1, done / of) : 0;
  return (
    <span class="counted">
      <progress max={1} value={share} aria-label={`${done} of ${of} ready`} />
      <span>{done} of {of}</span>
    </span>
  );
}

export function ObjectLink(props: { kind: string; apiVersion: string; namespace: string; name: string; label?: string }) {
  const found = props.apiVersion ? byKind(props.kind, props.apiVersion) : undefined; // Nodes are in another cluster
  const text = props.label ?? `${props.kind} ${props.name}`;
  if (!found) return <span>{text}</span>;
  return <a href={href(["object", found.group || "core", found.plural, props.namespace || "-", props.name])}>{text}</a>;
}

// -- messages that stay until they are dismissed ----------------------------------------------------------------
type Notice = { id: number; tone: "bad" | "good"; text: string };
export const notices = signal<Notice[]>([]);
let last = 0;

export function report(text: string, tone: "bad" | "good" = "bad"): void {
  const id = ++last;
  notices.value = [...notices.value, { id, tone, text }];
  // Errors stay until they are dismissed.
  if (tone === "good") setTimeout(() => { notices.value = notices.value.filter((each) => each.id !== id); }, 15_000);
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map((each) => (
        <div key={each.id} class={`notice ${each.tone}`}>
          <span>{each.text}</span>
          <button type="button" aria-label="Dismiss" onClick={() => (notices.value = notices.value.filter((n) => n !== each))}>×</button>
        </div>
      ))}
    </div>
  );
}

// -- a table of any length: only the rows in view are elements ---------------------------------------------------
export type Column<T> = { name: string; width?: string; of: (row: T) => ComponentChildren; sort?: (row: T) => string | number };
const HEIGHT = 34;

export function Table<T>(props: {
  label: string; rows: T[]; columns: Column<T>[]; id: (row: T) => string; link?: (row: T) => string; empty: string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [order, setOrder] = useState<{ column: number; up: boolean } | null>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    measure();
    let waiting = 0;
    const later = () => { waiting ||= requestAnimationFrame(() => { waiting = 0; measure(); }); };
    element.addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later);
    return () => { element.removeEventListener("scroll", later); removeEventListener("resize", later); };
  }, []);
  let rows = props.rows;
  if (order) {
    const by = props.columns[order.column]!.sort!;
    rows = [...rows].sort((a, b) => {
      const [x, y] = [by(a), by(b)];
      return (x < y ? -1 : x > y ? 1 : 0) * (order.up ? 1 : -1);
    });
  }
  const first = Math.max(0, Math.floor(view.top / HEIGHT) - 8);
  const shown = rows.slice(first, first + Math.min(90, Math.ceil(view.height / HEIGHT) + 16));
  const template = props.columns.map((each) => each.width ?? "minmax(0, 1fr)").join(" ");
  const style = { gridTemplateColumns: template };
  return (
    <div class="table" role="table" aria-label={props.label} aria-rowcount={rows.length + 1} ref={box} tabIndex={0}>
      <div class="row head" role="row" aria-rowindex={1} style={style}>
        {props.columns.map((each, column) => (
          <span role="columnheader" key={each.name} aria-sort={order?.column === column ? (order.up ? "ascending" : "descending") : "none"}>
            {each.sort ? (
              <button type="button" onClick={() => setOrder({ column, up: order?.column === column ? !order.up : true })}>
                {each.name}{order?.column === column ? (order.up ? " ↑" : " ↓") : ""}
              </button>
            ) : each.name}
          </span>
        ))}
      </div>
      {rows.length === 0 && <div role="row" class="empty"><span role="cell">{props.empty}</span></div>}
      <div role="presentation" style={{ height: `${first * HEIGHT}px` }} />
      {shown.map((row, index) => (
        <div class="row" role="row" key={props.id(row)} aria-rowindex={first + index + 2} style={style}>
          {props.columns.map((each, column) => (
            <span role="cell" key={each.name}>
              {column === 0 && props.link ? <a href={props.link(row)}>{each.of(row)}</a> : each.of(row)}
            </span>
          ))}
        </div>
      ))}
      <div role="presentation" style={{ height: `${Math.max(0, rows.length - first - shown.length) * HEIGHT}px` }} />
    </div>
  );
}

// -- a dialog ----------------------------------------------------------------------------------------------------
export function Dialog(props: { title: string; onClose: () => void; wide?: boolean; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    element.current?.showModal();
    return () => element.current?.close();
  }, []);
  return (
    <dialog ref={element} class={props.wide ? "wide" : ""} aria-label={props.title} onClose={props.onClose}>
      <header><h2>{props.title}</h2><button type="button" aria-label="Close" onClick={props.onClose}>×</button></header>
      <div class="content">{props.children}</div>
    </dialog>
  );
}

export function Command({ text }: { text: string }) {
  return (
    <p class="command">
      <span class="faint">The same in a terminal:</span> <code>{text}</code>{" "}
      <button type="button" onClick={() => void navigator.clipboard?.writeText(text)}>Copy</button>
    </p>
  );
}

export function useTopic<T>(name: string, options: object, handler: (state: T | null, message: any) => T | null): [T | null, string] {
  const [state, setState] = useState<T | null>(null);
  const [error, setError] = useState("");
  const key = JSON.stringify(options);
  useEffect(() => {
    let held: T | null = null;
    setState(null);
    setError("");
    return subscribe(name, options, (message) => {
      if (message.error) { setError(message.error); return; }
      setError("");
      held = handler(held, message);
      setState(held);
    });
  }, [name, key]);
  return [state, error];
}
