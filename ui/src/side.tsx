// The left side: the pages, and the clusters by namespace.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { isSick, useClusters, type Line } from "./clusters";
import { pages } from "./pages";
import { href, route } from "./route";
import { space, spaces } from "./space";

const HEIGHT = 28; // pixels of a row
const MANY = 12; // clusters: more are searched rather than read
const WIDE = matchMedia("(min-width: 60.01rem)");
const FOLDED = "homeport-folded";

/** A window that is small shows the page first. */
const place = () => (WIDE.matches ? "homeport-tree" : "homeport-tree-small");
const isOpen = () => (localStorage.getItem(place()) ?? (WIDE.matches ? "open" : "")) === "open";

export function Side() {
  const here = route.value.parts[0] ?? "";
  const page = here === "cluster" ? "" : here === "object" ? "kinds" : here;
  return (
    <div class="side">
      <nav class="pages" aria-label="Pages">
        {pages.value.map((each) => (
          <a key={each.name} href={href(each.parts, space.value ? { ns: space.value } : {})} aria-current={(each.parts[0] ?? "") === page ? (page === here ? "page" : "true") : undefined}>{each.name}</a>
        ))}
      </nav>
      <Clusters />
    </div>
  );
}

function Clusters() {
  const [open, setOpen] = useState(isOpen());
  const [text, setText] = useState("");
  const [only, setOnly] = useState(false);
  const [state, error] = useClusters(space.value, { brief: true, wanted: open });
  useEffect(() => {
    const changed = () => setOpen(isOpen());
    WIDE.addEventListener("change", changed);
    return () => WIDE.removeEventListener("change", changed);
  }, []);
  const toggle = () => { localStorage.setItem(place(), open ? "closed" : "open"); setOpen(!open); };
  const lines = state?.clusters ?? [];
  const sick = lines.filter(isSick).length;
  const picked = only && sick > 0; // as soon as all are healthy, all are shown
  const said = error || state?.denied || (state ? (lines.length ? "" : "no clusters") : "reading …");
  return (
    <nav class="clusters" aria-label="Clusters by namespace">
      <p class="head">
        <button type="button" class="fold" aria-expanded={open} onClick={toggle}><span aria-hidden="true">{open ? "▾" : "▸"}</span> By namespace</button>
        {open && sick > 0 && <button type="button" class="only bad" aria-pressed={picked} title="Show only those that are not healthy" onClick={() => setOnly(!picked)}><Mark sick /> {sick}<span class="hidden"> not healthy</span></button>}
      </p>
      {open && (lines.length > MANY || text) && <input type="search" aria-label="Filter the clusters" placeholder={`Filter ${lines.length} clusters`} value={text} onInput={(event) => setText(event.currentTarget.value)} />}
      {open && space.value && spaces.value.includes("") && <p class="note"><a href="#/?ns=">All namespaces</a></p>}
      {open && said && <p class={error || state?.denied ? "note bad" : "note faint"}>{said}</p>}
      {open && lines.length > 0 && <Tree lines={lines} text={text.trim().toLowerCase()} only={picked} />}
    </nav>
  );
}

/** Form and colour: not by the colour alone. */
function Mark({ sick, healthy = null }: { sick: boolean; healthy?: boolean | null }) {
  return <span class={`mark ${sick ? "bad" : healthy ? "good" : "busy"}`} aria-hidden="true">{sick ? "▲" : healthy ? "●" : "◐"}</span>;
}

type Row = { id: string; name: string; to: string; said: string; position: number; of: number; current: boolean; line?: Line; sick: number; open?: boolean };
const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

function rowsOf(lines: Line[], text: string, only: boolean, folded: Set<string>, here: string[]): Row[] {
  const groups = new Map<string, Line[]>();
  for (const each of lines) {
    if ((only && !isSick(each)) || (text && !`${each.namespace}/${each.name} ${each.kind}`.toLowerCase().includes(text))) continue;
    const group = groups.get(each.namespace);
    group ? group.push(each) : groups.set(each.namespace, [each]);
  }
  const rows: Row[] = [];
  const names = [...groups.keys()].sort(order);
  names.forEach((namespace, index) => {
    const found = groups.get(namespace)!.sort((a, b) => order(a.name, b.name) || order(a.kind, b.kind));
    const sick = found.filter(isSick).length;
    const open = Boolean(text) || only || !folded.has(namespace);
    rows.push({
      id: namespace, name: namespace, to: href([], { ns: namespace }), position: index + 1, of: names.length, current: false, sick, open,
      said: `${namespace}, namespace with ${found.length === 1 ? "1 cluster" : `${found.length} clusters`}${sick ? `, ${sick} not healthy` : ""}`,
    });
    if (open) found.forEach((line, at) => rows.push({
      id: `${namespace}/${line.kind}/${line.name}`, name: line.name, to: href(["cluster", line.kind, namespace, line.name]), position: at + 1, of: found.length, line, sick: Number(isSick(line)),
      current: here[0] === "cluster" && here[1] === line.kind && here[2] === namespace && here[3] === line.name,
      said: `${line.name}, ${line.kind}, ${isSick(line) ? `not healthy: ${line.cause || line.state}` : line.state || "no state yet"}`,
    }));
  });
  return rows;
}

function remembered(): Set<string> {
  try { return new Set(JSON.parse(localStorage.getItem(FOLDED) ?? "[]") as string[]); } catch { return new Set(); }
}

/** One stop of the Tab key; arrows go through it. Only the rows in view are elements. */
function Tree({ lines, text, only }: { lines: Line[]; text: string; only: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const [folded, setFolded] = useState(remembered);
  const [view, setView] = useState({ top: 0, height: 400 });
  const [active, setActive] = useState("");
  const moving = useRef(false);
  const here = route.value.parts;
  const rows = useMemo(() => rowsOf(lines, text, only, folded, here), [lines, text, only, folded, here.join("/")]);
  const current = rows.find((each) => each.current)?.id ?? "";
  const at = Math.max(0, rows.findIndex((each) => each.id === (active || current)));

  useEffect(() => {
    const element = box.current!;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    let waiting = 0;
    const later = () => { waiting ||= requestAnimationFrame(() => { waiting = 0; measure(); }); };
    const observer = new ResizeObserver(later);
    observer.observe(element);
    element.addEventListener("scroll", later, { passive: true });
    return () => { observer.disconnect(); cancelAnimationFrame(waiting); element.removeEventListener("scroll", later); };
  }, []);
  const show = (index: number, centred = false) => {
    const element = box.current!;
    const top = index * HEIGHT;
    if (centred && (top < element.scrollTop || top + HEIGHT > element.scrollTop + element.clientHeight)) element.scrollTop = top - (element.clientHeight - HEIGHT) / 2;
    else if (top < element.scrollTop) element.scrollTop = top;
    else if (top + HEIGHT > element.scrollTop + element.clientHeight) element.scrollTop = top + HEIGHT - element.clientHeight;
  };
  // The cluster of the page is in view when the page is opened, and not again at each change.
  useEffect(() => { if (current) { setActive(""); show(rows.findIndex((each) => each.current), true); } }, [current]);
  useLayoutEffect(() => {
    if (!moving.current) return;
    moving.current = false;
    show(at);
    box.current!.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true });
  });

  const fold = (namespace: string, shut: boolean) => {
    const next = new Set(folded);
    shut ? next.add(namespace) : next.delete(namespace);
    localStorage.setItem(FOLDED, JSON.stringify([...next]));
    setFolded(next);
  };
  const move = (index: number) => { const next = rows[Math.min(rows.length - 1, Math.max(0, index))]; if (next) { moving.current = true; setActive(next.id); } };
  const pressed = (event: KeyboardEvent) => {
    const row = rows[at];
    if (!row || event.ctrlKey || event.altKey || event.metaKey) return;
    const above = row.line ? at - row.position : at;
    const keys: Record<string, () => void> = {
      ArrowDown: () => move(at + 1), ArrowUp: () => move(at - 1), Home: () => move(0), End: () => move(rows.length - 1),
      PageDown: () => move(at + 10), PageUp: () => move(at - 10),
      ArrowRight: () => { if (!row.line) row.open ? move(at + 1) : fold(row.id, false); },
      ArrowLeft: () => { if (row.line) move(above); else if (row.open) fold(row.id, true); },
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };

  const first = Math.max(0, Math.floor(view.top / HEIGHT) - 8);
  const shown = rows.slice(first, first + Math.min(90, Math.ceil(view.height / HEIGHT) + 16)).map((row, index) => ({ row, index: first + index }));
  if (rows[at] && !shown.some((each) => each.index === at)) shown.push({ row: rows[at]!, index: at }); // keeps the focus
  return (
    <>
      <div class="branches" role="tree" aria-label="Clusters by namespace" hidden={!rows.length} ref={box} onKeyDown={pressed}>
        <div role="none" class="rows" style={{ height: `${rows.length * HEIGHT}px` }}>
          {shown.map(({ row, index }) => (
            <a key={row.id} href={row.to} role="treeitem" aria-level={row.line ? 2 : 1} aria-posinset={row.position} aria-setsize={row.of} aria-expanded={row.open} aria-current={row.current ? "page" : undefined}
              title={row.said} tabIndex={index === at ? 0 : -1} style={{ top: `${index * HEIGHT}px` }} onFocus={() => setActive(row.id)}>
              {row.line
                ? <Mark sick={row.sick > 0} healthy={row.line.healthy} />
                : <span class="twist" aria-hidden="true" onClick={(event) => { event.preventDefault(); fold(row.id, Boolean(row.open)); }}>{row.open ? "▾" : "▸"}</span>}
              <span class="text">{row.name}</span>
              {row.line && <small class={row.line.kind === "Cluster" ? "hidden" : "faint"}>{row.line.kind}</small>}
              {row.line && <span class="hidden">{row.sick ? "not healthy" : row.line.state}</span>}
              {!row.line && <span class="hidden">namespace</span>}
              {!row.line && row.sick > 0 && <small class="bad"><Mark sick /> {row.sick}<span class="hidden"> not healthy</span></small>}
            </a>
          ))}
        </div>
      </div>
      {rows.length === 0 && <p class="note faint" role="status">No cluster matches.</p>}
    </>
  );
}
