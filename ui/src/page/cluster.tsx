// One cluster: the live tree, its machines, conditions and what happened.
import { useState } from "preact/hooks";
import { amend, href, route } from "../route";
import { age, ObjectLink, State, Table, useTopic, type Column } from "../ui";
import { Actions } from "../act";
import { clusterOf, spaceOf, walk, type Branch } from "../branch";
import { ClusterAccess, ClusterAddons } from "./access";
import { ObjectLogs } from "./logs";
import { Below, Happened, isBelow } from "./timeline";
import { Filter, MachineTable } from "./machines";

type Tree = { tree: Branch | null; cause: string; unreadable?: string[]; problem: string; reading: boolean };

export function Cluster() {
  const [, kind = "", namespace = "", name = ""] = route.value.parts;
  const tab = route.value.query.get("tab") ?? "tree";
  const [state, error] = useTopic<Tree>("tree", { kind, namespace, name }, (_, message) => message);
  const tree = state?.tree;
  const version = tree ? tree.version || walk(tree).find((each) => each.version && each.role === "Control plane")?.version : "";
  return (
    <>
      <h1>{name} <small>{kind} in {namespace}</small></h1>
      {error && <p class="lonely bad">{error}</p>}
      {(!state || (!tree && state.reading)) && !error && <p class="lonely">Reading the tree …</p>}
      {state && !tree && !state.reading && <p class="lonely">There is no {kind} {name} in namespace {namespace}{state.problem ? ", or you may not see it" : ""}. <a href={href([])}>All clusters</a></p>}
      {tree && (
        <>
          <p class="sum">
            <State state={tree.state} healthy={tree.healthy} /> {version && <span>{version}</span>}{" "}
            <ObjectLink kind={tree.kind} apiVersion={tree.apiVersion} namespace={tree.namespace} name={tree.name} label="Edit" />
            {state.reading && <span class="faint" role="status"> reading the machines …</span>}
          </p>
          {state.cause && <p class="cause banner" role="alert">{state.cause}</p>}
          <Actions kind={tree.kind} apiVersion={tree.apiVersion} namespace={namespace} name={name} tree={tree} />
          <nav class="tabs" aria-label="Parts of the cluster">
            {["tree", "machines", "conditions", "timeline", "add-ons", "logs", "access"].map((each) => (
              <a key={each} href={href(route.value.parts, { tab: each })} aria-current={tab === each ? "page" : undefined}
                onClick={(event) => { event.preventDefault(); amend({ tab: each }); }}>{each}</a>
            ))}
          </nav>
          {tab === "tree" && <ul class="tree" aria-label={`Objects of ${name}`}><Node branch={state.cause.endsWith(tree.problem) ? { ...tree, problem: "" } : tree} level={1} /></ul>}
          {tab === "machines" && <MachineTable cluster={clusterOf(tree)} namespace={spaceOf(tree)} />}
          {tab === "conditions" && <Matrix tree={tree} />}
          {tab === "add-ons" && <ClusterAddons tree={tree} />}
          {tab === "access" && <ClusterAccess tree={tree} namespace={namespace} name={name} />}
          {tab === "logs" && <ObjectLogs kind={kind} namespace={namespace} name={name} />}
          {tab === "timeline" ? <Happened namespace={spaceOf(tree)} about={clusterOf(tree)} objects />
            : <Below namespace={spaceOf(tree)} about={clusterOf(tree)} all={`all of ${clusterOf(tree)}`} objects hint={tab === "tree" ? "A click on a line of the tree selects its object." : ""} />}
        </>
      )}
    </>
  );
}

/** The line of an object in the tree: if the timeline is shown below, it follows. Links and buttons keep their meaning. */
function select(event: MouseEvent, name: string): void {
  if (isBelow() && !(event.target as Element).closest("a, button")) amend({ about: name });
}

function Node({ branch, level }: { branch: Branch; level: number }) {
  const [open, setOpen] = useState(level < 5 || branch.healthy === false);
  const roles = [...new Set(branch.children.map((each) => each.role))];
  const has = branch.children.length > 0;
  return (
    <li data-object={`${branch.kind}/${branch.name}`}>
      <div class="leaf" data-selected={route.value.query.get("about") === branch.name || undefined} onClick={(event) => select(event, branch.name)}>
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

type Told = Branch["conditions"][number] & { of: Branch };

function Matrix({ tree }: { tree: Branch }) {
  const wanted = (route.value.query.get("q") ?? "").toLowerCase();
  const all = walk(tree).flatMap((each) => each.conditions.map((c): Told => ({ ...c, of: each })));
  // What is not as it should be comes first.
  all.sort((a, b) => Number(b.of.healthy === false && b.status !== "True") - Number(a.of.healthy === false && a.status !== "True"));
  const rows = all.filter((each) => `${each.of.kind} ${each.of.name} ${each.type} ${each.status} ${each.message ?? ""}`.toLowerCase().includes(wanted));
  const columns: Column<Told>[] = [
    { name: "Object", of: (c) => <ObjectLink {...c.of} />, sort: (c) => `${c.of.kind} ${c.of.name}`, width: "minmax(0, 2fr)" },
    { name: "Condition", of: (c) => c.type, sort: (c) => c.type, width: "minmax(0, 1.7fr)" },
    { name: "Status", of: (c) => c.status, sort: (c) => c.status, width: "5rem" },
    { name: "Since", of: (c) => age(c.lastTransitionTime), sort: (c) => c.lastTransitionTime ?? "", width: "5rem" },
    { name: "Message", of: (c) => <span title={c.message || c.reason}>{c.message || c.reason}</span>, width: "minmax(0, 3fr)" },
  ];
  return (
    <>
      <Filter count={rows.length} of={all.length} />
      <Table label="Conditions" rows={rows} columns={columns} id={(c) => `${c.of.kind}/${c.of.namespace}/${c.of.name}/${c.type}`} empty="No condition matches." />
    </>
  );
}
