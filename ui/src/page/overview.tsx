// What needs attention, and why, in one sentence for each cluster.
import { useState } from "preact/hooks";
import { isSick, useClusters, type Line } from "../clusters";
import { href } from "../route";
import { space } from "../space";
import { Below } from "./timeline";
import { Age, Bar, clock, ObjectLink, State } from "../ui";

const AT_ONCE = 100; // cards that are drawn: if a hypervisor fails, a thousand clusters may need attention

export function Overview() {
  const [state, error] = useClusters(space.value);
  const [limit, setLimit] = useState(AT_ONCE);
  const more = () => setLimit(limit + AT_ONCE);
  if (error) return <p class="lonely bad">{error}</p>;
  if (!state) return <p class="lonely">Reading the clusters …</p>;
  const sick = state.clusters.filter(isSick);
  const well = state.clusters.filter((each) => !isSick(each));
  const machines = state.clusters.reduce((sum, each) => sum + each.machines, 0);
  return (
    <>
      <h1>Clusters</h1>
      <p class="sum">
        <b>{state.clusters.length}</b> {state.clusters.length === 1 ? "cluster" : "clusters"} · <b>{machines}</b> {machines === 1 ? "machine" : "machines"} ·{" "}
        {sick.length ? <b class="bad">{sick.length} not healthy</b> : state.clusters.length > 0 ? <b class="good">all healthy</b> : "none yet"}
        {" · "}<a href={href(["create"])}>Create a cluster</a>
        {state.reading && <span class="faint" role="status"> · reading the machines …</span>}
      </p>
      {state.denied && <p class="cause banner" role="alert">{state.denied}</p>}
      {state.clusters.length === 0 && !state.denied && <p class="lonely">There are no clusters {space.value ? `in namespace ${space.value}` : "yet"}. <a href={href(["create"])}>Create the first one</a>.</p>}
      {sick.length > 0 && <section aria-label="Not healthy">{sick.slice(0, limit).map((each) => <Sick key={id(each)} line={each} />)}<More count={sick.length - limit} onClick={more} /></section>}
      {well.length > 0 && (
        <section class="cards" aria-label="Healthy">
          {well.slice(0, limit).map((each) => <Well key={id(each)} line={each} />)}
          <More count={well.length - limit} onClick={more} />
        </section>
      )}
      <Below namespace={space.value} all="all of them" />
    </>
  );
}

const id = (line: Line) => `${line.kind}/${line.namespace}/${line.name}`;
const link = (line: Line) => href(["cluster", line.kind, line.namespace, line.name]);

function More({ count, onClick }: { count: number; onClick: () => void }) {
  if (count <= 0) return null;
  return <p class="more"><button type="button" onClick={onClick}>Show {Math.min(AT_ONCE, count)} more</button> <span class="faint">of {count}; the tree on the left and Ctrl-K find all of them</span></p>;
}

function Sick({ line }: { line: Line }) {
  return (
    <article class="sick">
      <h2><a href={link(line)}>{line.name}</a> <small>{line.kind} in {line.namespace}</small></h2>
      <State state={line.state} healthy={line.healthy} />
      <Bar done={line.ready} of={Math.max(line.desired, line.machines)} />
      <p class="cause">
        <span>{line.cause || "No object reports a cause yet."}</span>{" "}
        {line.since && <><time class="faint" dateTime={line.since} title={line.since}>since {clock(line.since)} (<Age time={line.since} />)</time>{" "}</>}
        {line.at && <ObjectLink {...line.at} label={`Show ${line.at.kind} ${line.at.name}`} />}
      </p>
    </article>
  );
}

function Well({ line }: { line: Line }) {
  return (
    <article class="well">
      <h2><a href={link(line)}>{line.name}</a></h2>
      <small>{line.kind} · {line.namespace} {line.version && `· ${line.version}`}</small>
      <State state={line.state} healthy={line.healthy} />
      <Bar done={line.ready} of={Math.max(line.desired, line.machines)} />
    </article>
  );
}
