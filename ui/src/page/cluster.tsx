// One cluster: the live tree, its machines, conditions and what happened.
import { useState } from "preact/hooks";
import { amend, href, route } from "../route";
import { age, ObjectLink, State, useTopic } from "../ui";
import { Actions } from "../act";
import { clusterOf, spaceOf, walk, type Branch } from "../branch";
import { ObjectLogs } from "./logs";
import { Happened } from "./timeline";
import { MachineTable } from "./machines";

type Tree = { tree: Branch | null; cause: string; unreadable?: string[]; problem: string };

export function Cluster() {
  const [, kind = "", namespace = "", name = ""] = route.value.parts;
  const tab = route.value.query.get("tab") ?? "tree";
  const [state, error] = useTopic<Tree>("tree", { kind, namespace, name }, (_, message) => message);
  const tree = state?.tree;
  return (
    <>
      <h1>{name} <small>{kind} in {namespace}</small></h1>
      {error && <p class="lonely bad">{error}</p>}
      {!state && !error && <p class="lonely">Reading the tree …</p>}
      {state && !tree && <p class="lonely">There is no {kind} {name} in namespace {namespace}. <a href={href([])}>All clusters</a></p>}
      {tree && (
        <>
          <p class="sum">
            <State state={tree.state} healthy={tree.healthy} /> {tree.version && <span>{tree.version}</span>}{" "}
            <ObjectLink kind={tree.kind} apiVersion={tree.apiVersion} namespace={tree.namespace} name={tree.name} label="Edit" />
          </p>
          {state.cause && <p class="cause banner" role="alert">{state.cause}</p>}
          <Actions kind={tree.kind} apiVersion={tree.apiVersion} namespace={namespace} name={name} tree={tree} />
          <nav class="tabs" aria-label="Parts of the cluster">
            {["tree", "machines", "conditions", "timeline", "logs"].map((each) => (
              <a key={each} href={href(route.value.parts, { tab: each })} aria-current={tab === each ? "page" : undefined}
                onClick={(event) => { event.preventDefault(); amend({ tab: each }); }}>{each}</a>
            ))}
          </nav>
          {tab === "tree" && <ul class="tree" aria-label={`Objects of ${name}`}><Node branch={tree} level={1} /></ul>}
          {tab === "machines" && <MachineTable cluster={clusterOf(tree)} namespace={spaceOf(tree)} />}
          {tab === "conditions" && <Matrix tree={tree} />}
          {tab === "logs" && <ObjectLogs kind={kind} namespace={namespace} name={name} />}
          {tab === "timeline" && <Happened namespace={spaceOf(tree)} about={clusterOf(tree)} objects />}
        </>
      )}
    </>
  );
}

function Node({ branch, level }: { branch: Branch; level: number }) {
  const [open, setOpen] = useState(level < 5 || branch.healthy === false);
  const roles = [...new Set(branch.children.map((each) => each.role))];
  const has = branch.children.length > 0;
  return (
    <li data-object={`${branch.kind}/${branch.name}`}>
      <div class="leaf">
        {has ? <button type="button" class="twist" aria-expanded={open} aria-label={`${branch.kind} ${branch.name}`} onClick={() => setOpen(!open)}>{open ? "▾" : "▸"}</button> : <span class="twist" />}
        <span class="kind">{branch.kind === "Group" ? "" : branch.kind}</span>
        <ObjectLink kind={branch.kind} apiVersion={branch.apiVersion} namespace={branch.namespace} name={branch.name} label={branch.name} />
        <State state={branch.state} healthy={branch.healthy} />
        <span class="faint">{[branch.replicas && `${branch.replicas} ready`, branch.version].filter(Boolean).join(" · ")}</span>
        {branch.problem && <span class="why">{branch.problem}</span>}
      </div>
      {has && open && roles.map((role) => (
        <ul key={role} aria-label={role || `Below ${branch.kind} ${branch.name}`}>
          {role && <li class="role">{role}</li>}
          {branch.children.filter((each) => each.role === role).map((each) => (
            <Node key={`${each.kind}/${each.namespace}/${each.name}/${each.state}`} branch={each} level={level + 1} />
          ))}
        </ul>
      ))}
    </li>
  );
}

function Matrix({ tree }: { tree: Branch }) {
  const rows = walk(tree).filter((each) => each.conditions.length);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Conditions">
      <table class="plain">
        <thead><tr><th>Object</th><th>Condition</th><th>Status</th><th>Since</th><th>Message</th></tr></thead>
        <tbody>
          {rows.flatMap((each) => each.conditions.map((c) => (
            <tr key={`${each.kind}/${each.name}/${c.type}`}>
              <td><ObjectLink {...each} /></td><td>{c.type}</td>
              <td>{c.status}</td><td>{age(c.lastTransitionTime)}</td>
              <td>{c.message || c.reason}</td>
            </tr>
          )))}
        </tbody>
      </table>
    </div>
  );
}
