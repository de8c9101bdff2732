// The plane itself: its parts, controllers, queues, certificates; and who the user is.
import { useEffect, useState } from "preact/hooks";
import { may, mayReach, send } from "../request";
import { user } from "../session";
import { space, home } from "../space";
import { kinds } from "../kind";
import { age, Command, now, State, Table, type Column } from "../ui";

const CONTROLLERS: Column<any>[] = [
  { name: "Controller", of: (c) => c.name, sort: (c) => c.name, width: "minmax(0, 2fr)" },
  { name: "Queued", of: (c) => c.queue, sort: (c) => c.queue }, { name: "Delayed", of: (c) => c.delayed, sort: (c) => c.delayed },
  { name: "Reconciles", of: (c) => c.reconciles, sort: (c) => c.reconciles }, { name: "Errors", of: (c) => c.errors, sort: (c) => c.errors },
  { name: "Unfinished", of: (c) => c.unfinishedCount, sort: (c) => c.unfinishedCount },
];

export function Plane() {
  const [state, setState] = useState<any>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const allowed = mayReach("post", "/homeport/status").catch(() => true); // asked once, so that nobody is refused each second
    const read = async () => ((await allowed) ? send("POST", "/homeport/status") : Promise.reject(new Error("you may not post to the path /homeport/status"))).then((found) => { setState(JSON.parse(found.text)); setProblem(""); }).catch((error: Error) => setProblem(error.message));
    void read();
    const timer = setInterval(() => { if (!document.hidden) void read(); }, 1000);
    return () => clearInterval(timer);
  }, []);
  return (
    <>
      <h1>The plane</h1>
      {problem && <p class="lonely">This page needs the plane of <code>homeport up</code> and the right to see it: {problem}.</p>}
      {state && (
        <>
          {state.standby && <p class="cause banner" role="alert">The controllers are off: {state.standby}</p>}
          <section><h2>Components</h2>
            <table class="plain"><thead><tr><th>Component</th><th>State</th><th>Crashes</th><th>Problem</th></tr></thead>
              <tbody>{(state.parts ?? []).map((each: any) => (
                <tr key={each.name}><td>{each.name}</td><td><State state={each.state ?? ""} healthy={each.state === "running" ? true : null} /></td><td>{each.crashes || <span class="faint">–</span>}</td><td class="bad">{each.error ?? ""}</td></tr>
              ))}</tbody></table>
          </section>
          {Object.keys(state.blind ?? {}).length > 0 && (
            <section><h2>Kinds that can't be watched</h2>
              <ul>{Object.entries(state.blind as Record<string, string>).map(([kind, why]) => <li key={kind}><b>{kind}</b>: {why}</li>)}</ul>
            </section>
          )}
          <Certificates found={state.certificates ?? []} />
          <section><h2>Backup and kubeconfig</h2>
            <p>{state.backup ? <>The last backup was written {age(at(state.backup.written))} ago to <code>{state.backup.file}</code>.</> : "No backup of this plane has been written yet."}</p>
            <Command label="Write one:" text="homeport backup homeport.tar" />
            {state.kubeconfig && <p>The administrator's kubeconfig is <code>{state.kubeconfig}</code> on the machine of the plane. Those of clusters are on the Access tab of each cluster.</p>}
            <Command label="Use it in a shell:" text='eval "$(homeport env)"' />
          </section>
          <section><h2>Controllers</h2>
            <Table label="Controllers" rows={state.controllers ?? []} columns={CONTROLLERS} id={(each) => each.name} empty="There are none." />
          </section>
        </>
      )}
      <Command text="homeport status --controllers" />
    </>
  );
}

const at = (seconds: number) => new Date(seconds * 1000).toISOString();
const DAY = 86_400;

type Certificate = { name: string; file: string; until: number; renewed: boolean };

function Certificates({ found }: { found: Certificate[] }) {
  if (!found.length) return null;
  return (
    <section><h2>Certificates</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Certificates">
      <table class="plain steady"><thead><tr><th>Certificate</th><th>Valid for</th><th>Until</th><th>Renewal</th><th>File</th></tr></thead>
        <tbody>{found.map((each) => {
          const days = Math.floor((each.until - now.value / 1000) / DAY);
          return (
            <tr key={each.name}>
              <td>{each.name}</td><td><State state={days < 0 ? "Expired" : days === 1 ? "1 day" : `${days} days`} healthy={days >= 30 ? true : days < 0 ? null : false} /></td>
              <td>{at(each.until).slice(0, 10)}</td><td>{each.renewed ? "automatic" : "by hand"}</td><td><code>{each.file}</code></td>
            </tr>
          );
        })}</tbody></table>
      </div>
    </section>
  );
}

const VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"];
const ASKED = ["clusters", "machines", "machinedeployments", "tenantclusters", "clusterdeployments", "secrets", "events"];

export function Access() {
  const [table, setTable] = useState<Record<string, boolean[]>>({});
  const [groups, setGroups] = useState<string[]>([]);
  const where = space.value || "";
  useEffect(() => {
    send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" }))
      .then((found) => setGroups(JSON.parse(found.text).status?.userInfo?.groups ?? [])).catch(() => setGroups([])); // servers before Kubernetes 1.28 have no such review
  }, []);
  useEffect(() => {
    for (const kind of kinds.value.filter((each) => ASKED.includes(each.plural))) {
      void Promise.all(VERBS.map((verb) => may(verb, kind.group, kind.plural, where).catch(() => false)))
        .then((found) => setTable((held) => ({ ...held, [`${kind.plural}${kind.group ? "." + kind.group : ""}`]: found })));
    }
  }, [where, kinds.value.length]);
  return (
    <>
      <h1>Access</h1>
      <p>You are <b>{user.value}</b>{groups.length > 0 && <> in the {groups.length === 1 ? "group" : "groups"} {groups.map((each, index) => <>{index > 0 && ", "}<b key={each}>{each}</b></>)}</>}. The dashboard has no rights of its own: it uses your credential, so you see and change here what you may see and change with kubectl. Your kubeconfig names the namespace <b>{home.value}</b>.</p>
      <h2>What you may do {where ? `in namespace ${where}` : "in all namespaces"}</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Rights">
        <table class="plain"><thead><tr><th>Resource</th>{VERBS.map((verb) => <th key={verb}>{verb}</th>)}</tr></thead>
          <tbody>{Object.entries(table).sort().map(([name, found]) => (
            <tr key={name}><td>{name}</td>{found.map((each, index) => <td key={VERBS[index]}>{each ? "yes" : <span class="faint">no</span>}</td>)}</tr>
          ))}</tbody></table>
      </div>
      <Command text={`kubectl auth can-i --list${where ? ` -n ${where}` : ""}`} />
    </>
  );
}
