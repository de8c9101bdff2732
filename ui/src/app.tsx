// The shell: who is logged in, where we are, and whether the plane is connected.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { loadKinds } from "./kind";
import { Palette, searching } from "./palette";
import { findSimulators } from "./pages";
import { abandon, leaving, route, stay, unsaved } from "./route";
import { may, get } from "./request";
import { begin, lapsed, leave, problem, user } from "./session";
import { choose, home, space, spaces } from "./space";
import { Side } from "./side";
import { connect, link, stale } from "./stream";
import { Dialog, Notices, report } from "./ui";
import { Cluster } from "./page/cluster";
import { Create } from "./page/create";
import { Kinds } from "./page/kinds";
import { Addresses } from "./page/addresses";
import { Addons, Teams, Templates } from "./page/lists";
import { Logs } from "./page/logs";
import { Machines } from "./page/machines";
import { ObjectPage } from "./page/object";
import { Overview } from "./page/overview";
import { Access, Plane } from "./page/plane";
import { Simulator } from "./page/simulator";
import { Timeline } from "./page/timeline";

const VIEWS: Record<string, () => any> = {
  "": Overview, cluster: Cluster, machines: Machines, create: Create, timeline: Timeline, kinds: Kinds, logs: Logs,
  plane: Plane, access: Access, object: ObjectPage, templates: Templates, addresses: Addresses, addons: Addons, teams: Teams, simulator: Simulator,
};
const LEAST: Record<string, number> = { cluster: 4, object: 5 }; // parts of an address that names something
const LINKS = { connecting: "connecting …", open: "live", lost: "no connection: trying again", ended: "logged out" };

function theme(): string {
  return localStorage.getItem("homeport-theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function App() {
  const [shade, setShade] = useState(theme());
  useEffect(() => {
    document.documentElement.dataset.theme = shade;
    localStorage.setItem("homeport-theme", shade);
  }, [shade]);
  if (!user.value && !lapsed.value) return <Stranger />;
  const here = route.value.parts[0] ?? "";
  const View = (route.value.parts.length >= (LEAST[here] ?? 0) ? VIEWS[here] : undefined) ?? (() => <p class="lonely">There is no such page. <a href="#/">Clusters</a></p>);
  return (
    <>
      {!user.value && <Stranger />}
      <div class="shell" hidden={!user.value}>
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>To the content</a>
      <header class="top">
        <a class="brand" href="#/"><img src="icon.svg" alt="" width="22" height="22" /> Homeport</a>
        <button type="button" class="search" onClick={() => { searching.value = true; }}>Go to … <kbd>Ctrl K</kbd></button>
        <label class="space">Namespace <Spaces /></label>
        <Freshness />
        <button type="button" aria-label={shade === "dark" ? "Light theme" : "Dark theme"} onClick={() => setShade(shade === "dark" ? "light" : "dark")}>{shade === "dark" ? "☀" : "☾"}</button>
        <span class="who" title={user.value}>{user.value}</span>
        <button type="button" onClick={() => abandon(() => void leave())}>Log out</button>
      </header>
      <Side />
      <main id="content" tabIndex={-1}><View /></main>
      <Notices />
      {searching.value && <Palette />}
      {leaving.value && <Unsaved />}
      </div>
    </>
  );
}

/** Whether what is shown is up to date, and if not, from when it is. */
function Freshness() {
  if (link.value !== "open" || !stale.value) return <span class={`link ${link.value}`} role="status">{LINKS[link.value]}</span>;
  const { since, why } = stale.value;
  return <span class="link lost" role="status" title={why}>old data, of {new Date(since * 1000).toLocaleTimeString()}: {why}</span>;
}

function Spaces() {
  return (
    <select value={space.value} onChange={(event) => choose(event.currentTarget.value)}>
      {[...new Set([...spaces.value, space.value])].map((each) => <option key={each} value={each}>{each || "all"}</option>)}
    </select>
  );
}

function Unsaved() {
  const go = () => { unsaved.value = ""; };
  return (
    <Dialog title="Leave this page?" onClose={stay}>
      <p>{unsaved.value} If you leave, your text is lost.</p>
      <p class="actions"><button type="button" class="main" autofocus onClick={stay}>Keep editing</button> <button type="button" class="danger" onClick={go}>Discard and leave</button></p>
    </Dialog>
  );
}

function Stranger() {
  return (
    <main class="stranger">
      <h1><img src="icon.svg" alt="" width="36" height="36" /> Homeport</h1>
      {problem.value && <p role="alert">{problem.value}</p>}
      <p>To log in, run this where your kubeconfig is, and open the link that it prints:</p>
      <pre tabIndex={0}>homeport dashboard</pre>
    </main>
  );
}

/** Where the user looks first: everywhere, or in the namespace of their kubeconfig. */
async function findSpace(): Promise<void> {
  if (await may("list", "cluster.x-k8s.io", "clusters", "").catch(() => false)) spaces.value = ["", ...new Set([home.value, space.value].filter(Boolean))];
  else {
    spaces.value = [home.value];
    choose(home.value);
  }
}

async function loadSpaces(): Promise<void> {
  if (!spaces.value.includes("") || !(await may("list", "", "namespaces", ""))) return;
  const found = (await get("/api/v1/namespaces")).items as any[];
  spaces.value = ["", ...found.map((each) => each.metadata.name as string)];
}

async function main(): Promise<void> {
  await begin();
  if (user.value) {
    connect();
    await findSpace();
    loadSpaces().catch((error: Error) => report(error.message));
    void findSimulators();
    loadKinds().catch((error: Error) => report(error.message));
  }
  render(<App />, document.getElementById("app")!);
}
void main();
