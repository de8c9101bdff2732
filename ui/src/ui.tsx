// Small parts that all pages use.
import { signal } from "@preact/signals";
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
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

/** Grows older by itself: what is around it is not drawn again. */
export function Age({ time }: { time: string }) {
  return <>{age(time)}</>;
}

/** The time of day, with the date if that is another one. */
export function clock(time: string): string {
  const at = new Date(time);
  return at.toDateString() === new Date().toDateString() ? at.toLocaleTimeString() : at.toLocaleString();
}

export function tone(state: string, healthy?: boolean | null): string {
  if (healthy === true) return "good";
  if (/^(Available|Ready|Running|Provisioned|Bound|Active|True|Succeeded|Healthy)$/.test(state)) return "good";
  if (/Fail|Error|Expired|Unavailable|^Not |False|Unknown|Degraded/.test(state)) return "bad";
  return healthy === false || state ? "busy" : "none";
}

export function State({ state, healthy }: { state: string; healthy?: boolean | null }) {
  if (!state) return <span class="faint">–</span>;
  return <span class={`state ${tone(state, healthy)}`}>{state}</span>;
}

export function Bar({ done, of }: { done: number; of: number }) {
  if (!of) return <span class="counted faint">no machines yet</span>;
  const share = Math.min(1, done / of);
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
  const template = props.columns.map((each) => each.width ?? "minmax(6.5rem, 1fr)").join(" ");
  const style = { gridTemplateColumns: template };
  const lines = useLines(props.columns, props.link);
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
      {lines(shown.map((row, index) => ({ id: props.id(row), row, index: first + index + 2 })), style)}
      <div role="presentation" style={{ height: `${Math.max(0, rows.length - first - shown.length) * HEIGHT}px` }} />
    </div>
  );
}

type Style = { gridTemplateColumns: string };
type Entry<T> = { id: string; row: T; index: number };
type Line<T> = { entry: Entry<T>; element: VNode };

/** Draws rows, and those that are the same as before not again: columns that are the same array draw them alike. */
function useLines<T>(columns: Column<T>[], link?: (row: T) => string) {
  const held = useRef<{ columns: Column<T>[]; link?: (row: T) => string; lines: Map<string, Line<T>> }>({ columns, link, lines: new Map() });
  if (held.current.columns !== columns || held.current.link !== link) held.current = { columns, link, lines: new Map() };
  return (entries: Entry<T>[], style: Style): VNode[] => {
    const before = held.current.lines;
    const lines = new Map(entries.map((entry): [string, Line<T>] => {
      const known = before.get(entry.id);
      if (known && known.entry.row === entry.row && known.entry.index === entry.index) return [entry.id, known];
      return [entry.id, { entry, element: <RowLine key={entry.id} row={entry.row} index={entry.index} columns={columns} link={link} style={style} /> }];
    }));
    held.current.lines = lines;
    return [...lines.values()].map((each) => each.element);
  };
}

function RowLine<T>(props: { row: T; index: number; columns: Column<T>[]; link?: (row: T) => string; style: Style }) {
  return (
    <div class="row" role="row" aria-rowindex={props.index} style={props.style}>
      {props.columns.map((each, column) => {
        const content = each.of(props.row);
        return (
          <span role="cell" key={each.name} title={typeof content === "string" ? content : undefined}>
            {column === 0 && props.link ? <a href={props.link(props.row)}>{content}</a> : content}
          </span>
        );
      })}
    </div>
  );
}

// -- a dialog ----------------------------------------------------------------------------------------------------
export function Dialog(props: { title: string; onClose: () => void; wide?: boolean; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  // Not after the next frame, which is late on a slow machine: the next key is for the dialog already.
  useLayoutEffect(() => {
    element.current?.showModal();
    return () => element.current?.close();
  }, []);
  // The event comes a task after the end of the dialog: by then another one may be open.
  const closed = () => { if (element.current) props.onClose(); };
  return (
    <dialog ref={element} class={props.wide ? "wide" : ""} aria-label={props.title} onClose={closed}
      onCancel={(event) => { event.preventDefault(); props.onClose(); }}>
      <header><h2>{props.title}</h2><button type="button" aria-label="Close" onClick={props.onClose}>×</button></header>
      <div class="content">{props.children}</div>
    </dialog>
  );
}

export function Command({ text, label = "The same in a terminal:" }: { text: string; label?: string }) {
  return (
    <p class="command">
      <span class="faint">{label}</span> <code>{text}</code>{" "}
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

/** Runs one work at a time: a second click does not send a change again. What comes first says whether one runs. */
export function useOnce(): [boolean, (work: () => Promise<unknown>) => void] {
  const running = useRef(false);
  const [busy, setBusy] = useState(false);
  const run = (work: () => Promise<unknown>) => {
    if (running.current) return;
    running.current = true;
    setBusy(true);
    void work().finally(() => { running.current = false; setBusy(false); });
  };
  return [busy, run];
}

/** Does what was only shown so far. It is beside the button that shows it, and has the focus: neither a double click nor a key that is held goes past what is shown. */
export function Confirm({ name, busy, onClick }: { name: string; busy: boolean; onClick: () => void }) {
  const element = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => element.current?.focus(), []);
  return <button type="button" class="main" ref={element} aria-disabled={busy} onKeyDown={(event) => { if (event.repeat) event.preventDefault(); }} onClick={onClick}>{name}</button>;
}
