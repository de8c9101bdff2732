// Logs: of a Pod, live; of the controllers about one object; and consoles of VMs.
import { useEffect, useRef, useState } from "preact/hooks";
import { amend, route } from "../route";
import { errand, get } from "../request";
import { useRows } from "../rows";
import { home, spaces } from "../space";
import { subscribe } from "../stream";
import { Command, Table, type Column } from "../ui";

const MOST = 100_000; // lines that are kept; some of them are elements
const MOST_TEXT = 20_000_000; // characters of all of them
const HEIGHT = 20;

export function Logs() {
  const scope = spaces.value.includes("") ? "" : home.value; // all Pods, for who may see all namespaces
  const [pods, problem] = useRows("", "pods", scope, [["status", "phase"]]);
  const pod = route.value.query.get("pod") ?? "";
  const text = route.value.query.get("text") ?? "";
  const [containers, setContainers] = useState<string[]>([]);
  useEffect(() => {
    setContainers([]);
    const [namespace, name] = pod.split("/");
    if (name) get(`/api/v1/namespaces/${namespace}/pods/${name}`).then((found) => setContainers(found.spec.containers.map((each: any) => each.name))).catch(() => setContainers([]));
  }, [pod]);
  const container = route.value.query.get("container") ?? (containers.length > 1 ? containers[0]! : "");
  const ready = pod && (containers.length > 0 || container);
  return (
    <>
      <h1>Logs</h1>
      {problem && <p class="lonely bad">{problem}</p>}
      <p class="filter">
        <label>Pod <select value={pod} onChange={(event) => amend({ pod: event.currentTarget.value, container: "" })}>
          <option value="">choose …</option>
          {(pods ?? []).map((each) => `${each.namespace}/${each.name}`).sort().map((each) => <option key={each}>{each}</option>)}
        </select></label>
        {containers.length > 1 && <label>Container <select value={container} onChange={(event) => amend({ container: event.currentTarget.value })}>{containers.map((each) => <option key={each}>{each}</option>)}</select></label>}
        <label>Lines with <input type="search" value={text} placeholder="for example default/harbour" onChange={(event) => amend({ text: event.currentTarget.value })} /></label>
      </p>
      {!pod && <p class="lonely">Choose a Pod. Homeport's own controllers are containers of homeport-system/homeport. What they logged about one cluster or machine is on the Logs tab of its page.</p>}
      {ready && <PodLog key={pod + container + text} pod={pod} container={container} text={text} />}
    </>
  );
}

function PodLog({ pod, container, text }: { pod: string; container: string; text: string }) {
  const [namespace = "", name = ""] = pod.split("/");
  return <Lines label={`Log of ${pod}`} topic="log" options={{ namespace, pod: name, container, text }} />;
}

export function Console({ namespace, machine }: { namespace: string; machine: string }) {
  return (
    <>
      <Lines label={`Console of ${machine}`} topic="console" options={{ namespace, machine }} />
      <Command text={`homeport console ${machine} -n ${namespace}`} />
    </>
  );
}

const HEAD = new Set(["time", "level", "logger", "event", "controller", "object", "timestamp", "msg", "message"]);

/** A line of a structured log as a person reads it; others stay as they are. */
export function spoken(line: string): string {
  if (!line.startsWith("{")) return line;
  let found: any;
  try { found = JSON.parse(line); } catch { return line; }
  const text = found.event ?? found.msg ?? found.message;
  if (typeof text !== "string") return line;
  const rest = Object.entries(found).filter(([name]) => !HEAD.has(name)).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const head = [String(found.time ?? found.timestamp ?? "").slice(0, 23).replace("T", " "), String(found.level ?? "").padEnd(7), [found.controller, found.object].filter(Boolean).join(" ")];
  return `${head.filter((each) => each.trim()).join(" ")}: ${[text, ...rest].join(" ")}`;
}

/** Follows a subscription of lines; only those in view are elements. */
function Lines({ label, topic, options }: { label: string; topic: string; options: object }) {
  const held = useRef<string[]>([]);
  const box = useRef<HTMLDivElement>(null);
  const [, setVersion] = useState(0);
  const [top, setTop] = useState(0);
  const [following, setFollowing] = useState(true);
  const [problem, setProblem] = useState("");
  const [elsewhere, setElsewhere] = useState("");
  useEffect(() => {
    held.current = [];
    let size = 0;
    return subscribe(topic, options, (message) => {
      if (message.error) { setProblem(message.error); return; }
      if (message.first) { held.current = []; size = 0; } // the connection was lost: all lines come again
      if (message.elsewhere) setElsewhere(message.elsewhere as string);
      for (const line of (message.lines as string[]).map(spoken)) { held.current.push(line); size += line.length; }
      let gone = Math.max(0, held.current.length - MOST);
      for (const line of held.current.slice(0, gone)) size -= line.length;
      while (size > MOST_TEXT) size -= held.current[gone++]!.length;
      held.current.splice(0, gone);
      setVersion((before) => before + 1);
    });
  }, [topic, JSON.stringify(options)]);
  const count = held.current.length;
  useEffect(() => { if (following && box.current) box.current.scrollTop = box.current.scrollHeight; }, [count, following]);
  if (problem) return <p class="lonely bad">{problem}</p>;
  if (elsewhere) return <p class="banner neutral">{elsewhere}</p>;
  const first = Math.max(0, Math.floor(top / HEIGHT) - 10);
  const shown = held.current.slice(first, first + 90);
  return (
    <>
      <div class="log" role="log" aria-label={label} aria-live="off" tabIndex={0} ref={box} onScroll={(event) => {
        const element = event.currentTarget;
        // Lines that came since the page scrolled to the end are no reason to stop: a user scrolls up.
        if (element.scrollTop + element.clientHeight >= element.scrollHeight - HEIGHT) setFollowing(true);
        else if (element.scrollTop < top) setFollowing(false);
        setTop(element.scrollTop);
      }}>
        <div style={{ height: `${first * HEIGHT}px` }} />
        {shown.map((line, index) => <div class="line" key={first + index} title={line}>{line}</div>)}
        <div style={{ height: `${Math.max(0, count - first - shown.length) * HEIGHT}px` }} />
        {count === 0 && <div class="faint">no lines yet</div>}
      </div>
      <p class="faint" role="status">{count} {count === 1 ? "line" : "lines"}{following ? ", following" : ", not following: scroll to the end to follow"}</p>
    </>
  );
}

type Line = { n: number; time: string; level: string; controller: string; object: string; text: string };

/** What all controllers have logged about an object; for a cluster, also about everything that belongs to it. */
export function ObjectLogs({ kind, namespace, name }: { kind: string; namespace: string; name: string }) {
  const [lines, setLines] = useState<Line[] | null>(null);
  const [problem, setProblem] = useState("");
  const wanted = (route.value.query.get("q") ?? "").toLowerCase();
  const read = () => {
    setProblem("");
    errand("logs", { kind, namespace, name }).then((found) => setLines(found.reverse().map((each: Line, n: number) => ({ ...each, n })))).catch((error: Error) => setProblem(error.message));
  };
  useEffect(() => { setLines(null); read(); }, [kind, namespace, name]);
  const rows = (lines ?? []).filter((each) => Object.values(each).join(" ").toLowerCase().includes(wanted));
  const columns: Column<Line>[] = [
    { name: "Time", of: (l) => l.time.slice(0, 19).replace("T", " "), width: "11rem" },
    { name: "Level", of: (l) => <span class={/warn|error|crit/.test(l.level) ? "bad" : ""}>{l.level}</span>, width: "5rem" },
    { name: "Controller", of: (l) => l.controller, sort: (l) => l.controller, width: "11rem" },
    { name: "Object", of: (l) => <span title={l.object}>{l.object}</span>, sort: (l) => l.object, width: "15rem" },
    { name: "Text", of: (l) => <span title={l.text}>{l.text}</span>, width: "minmax(20rem, 3fr)" },
  ];
  if (problem) return <p class="lonely bad">{problem}</p>;
  if (!lines) return <p class="lonely">Reading the logs of all controllers …</p>;
  return (
    <>
      <p class="filter"><label>Filter <input type="search" value={wanted} onInput={(event) => amend({ q: event.currentTarget.value })} /></label>
        <span class="faint">{rows.length} of {lines.length} lines, newest first</span> <button type="button" onClick={read}>Read again</button></p>
      <Table label={`Logs about ${name}`} rows={rows} columns={columns} id={(l) => String(l.n)} empty="No controller has logged anything about it." />
      <Command text={`homeport logs ${kind.toLowerCase()}/${name}${namespace ? ` -n ${namespace}` : ""}`} />
    </>
  );
}
