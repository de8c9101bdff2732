// Logs of controllers and of simulated machines' consoles: Pods of the plane.
import { useEffect, useRef, useState } from "preact/hooks";
import { amend, route } from "../route";
import { useRows } from "../rows";
import { subscribe } from "../stream";

const MOST = 5000;

export function Logs() {
  const [pods, problem] = useRows("", "pods", "", [["status", "phase"]]);
  const pod = route.value.query.get("pod") ?? "";
  const text = route.value.query.get("text") ?? "";
  return (
    <>
      <h1>Logs</h1>
      {problem && <p class="lonely bad">{problem}</p>}
      <p class="filter">
        <label>Pod <select value={pod} onChange={(event) => amend({ pod: event.currentTarget.value })}>
          <option value="">choose …</option>
          {(pods ?? []).map((each) => `${each.namespace}/${each.name}`).sort().map((each) => <option key={each}>{each}</option>)}
        </select></label>
        <label>Lines with <input type="search" value={text} placeholder="for example default/harbour" onChange={(event) => amend({ text: event.currentTarget.value })} /></label>
      </p>
      {pod && <Lines key={pod + text} pod={pod} text={text} />}
    </>
  );
}

function Lines({ pod, text }: { pod: string; text: string }) {
  const [lines, setLines] = useState<string[]>([]);
  const [problem, setProblem] = useState("");
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const [namespace = "", name = ""] = pod.split("/");
    return subscribe("log", { namespace, pod: name, text }, (message) => {
      if (message.error) setProblem(message.error);
      else setLines((held) => [...(message.first ? [] : held), ...(message.lines as string[])].slice(-MOST));
    });
  }, [pod, text]);
  useEffect(() => { end.current?.scrollIntoView({ block: "nearest" }); }, [lines.length]);
  if (problem) return <p class="lonely bad">{problem}</p>;
  return (
    <div class="log" role="log" aria-label={`Log of ${pod}`} tabIndex={0}>
      {lines.slice(-1000).map((line, index) => <div key={index}>{line}</div>)}
      {lines.length === 0 && <div class="faint">no lines yet</div>}
      <div ref={end} />
    </div>
  );
}
