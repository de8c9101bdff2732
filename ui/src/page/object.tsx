// One object: edit, dry run, difference, apply.
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { byPlural, kinds, path, type Kind } from "../kind";
import { diff, type Line } from "../diff";
import { amend, href, route, unsaved } from "../route";
import { patchOf } from "../merge";
import { errand, may, Refusal, send } from "../request";
import { Command, report, useOnce } from "../ui";
import { Rehearsal } from "../rehearsal";
import { Console, ObjectLogs } from "./logs";
import { Below } from "./timeline";

const CAPI = "cluster.x-k8s.io";

/** Without what the server keeps for itself: nobody edits it, and it hides the rest. */
function tidy(text: string): string {
  const made: string[] = [];
  let skipping = false;
  for (const line of text.split("\n")) {
    if (/^ {2}generation:/.test(line)) continue;
    if (/^ {2}managedFields:/.test(line)) { skipping = true; continue; }
    if (skipping && /^( {2}-| {4}| {3})/.test(line)) continue;
    skipping = false;
    made.push(line);
  }
  return made.join("\n");
}

export function ObjectPage() {
  const [, group = "", plural = "", space = "", name = ""] = route.value.parts;
  const kind = byPlural(plural, group === "core" ? "" : group);
  if (!kind) return <p class="lonely">{kinds.value.length ? `The API server has no ${plural}.` : "Reading the kinds …"}</p>;
  const namespace = space === "-" ? "" : space;
  const tabs = ["yaml", "logs", ...(kind.kind === "Machine" && kind.group === CAPI ? ["console"] : [])];
  const tab = route.value.query.get("tab") ?? "yaml";
  return (
    <>
      <h1>{name} <small>{kind.kind}{namespace ? ` in ${namespace}` : ""} · <a href={href(["kinds", kind.group || "core", kind.plural])}>all {kind.plural}</a></small></h1>
      <nav class="tabs" aria-label="Parts of the object">
        {tabs.map((each) => (
          <a key={each} href={href(route.value.parts, { tab: each })} aria-current={tab === each ? "page" : undefined}
            onClick={(event) => { event.preventDefault(); amend({ tab: each, q: "" }); }}>{each === "yaml" ? "YAML" : each}</a>
        ))}
      </nav>
      {/* What was typed is still there after a look at the logs. */}
      {(tab === "yaml" || unsaved.value) && <div hidden={tab !== "yaml"}><Editor key={route.value.parts.join("/")} kind={kind} namespace={namespace} name={name} /></div>}
      {tab === "logs" && <ObjectLogs kind={kind.kind} namespace={namespace} name={name} />}
      {tab === "console" && <Console namespace={namespace} machine={name} />}
      <Below namespace={namespace} about={name} objects flat />
    </>
  );
}

function Editor({ kind, namespace, name }: { kind: Kind; namespace: string; name: string }) {
  const [held, setHeld] = useState<string | null>(null);
  const [text, setText] = useState("");
  const [lines, setLines] = useState<Line[] | null>(null);
  const [problem, setProblem] = useState("");
  const [theirs, setTheirs] = useState<Line[] | null>(null);
  const [writable, setWritable] = useState(false);
  const [busy, once] = useOnce();
  const where = path(kind, namespace, name);
  const secret = kind.kind === "Secret" && !kind.group;

  const read = async () => tidy((await send("GET", where, "", "application/json", "application/yaml")).text);

  async function load(): Promise<string> {
    const found = await read();
    setHeld(found);
    setText(found);
    setLines(null);
    setTheirs(null);
    setProblem("");
    return found;
  }
  useEffect(() => {
    load().catch((error: Error) => setProblem(error.message));
    may("update", kind.group, kind.plural, namespace, name).then(setWritable).catch(() => setWritable(false));
  }, [where]);

  async function write(dry: boolean): Promise<void> {
    setProblem("");
    try {
      const query = dry ? "?dryRun=All&fieldValidation=Strict" : "?fieldValidation=Strict&fieldManager=homeport-dashboard";
      const answer = await send("PUT", where + query, text, "application/yaml", "application/yaml");
      if (answer.warning) report(answer.warning);
      if (dry) { setLines(diff(held ?? "", tidy(answer.text))); return; }
      unsaved.value = ""; // also while it is read again
      report(`${kind.kind} ${name} was changed`, "good");
      await load();
    } catch (error) {
      const status = error instanceof Refusal ? error.status : 0;
      setLines(null);
      setProblem(status === 404 ? `${kind.kind} ${name} was deleted meanwhile. Your text stays here until you leave the page.` : (error as Error).message);
      if (status === 409) await compare();
    }
  }

  /** After a conflict: what the others changed, and what this user did. */
  async function compare(): Promise<void> {
    try {
      setTheirs(diff(held ?? "", await read()));
    } catch (error) {
      setProblem((error as Error).message);
    }
  }

  /** The change of this user, on the version of the others. */
  async function merge(): Promise<void> {
    try {
      const [before, after] = [await errand("parse", { manifest: held }), await errand("parse", { manifest: text })];
      for (const each of [before, after]) { delete each.metadata?.resourceVersion; delete each.status; }
      const fresh = await read();
      const made = await send("PATCH", `${where}?dryRun=All&fieldValidation=Strict`, JSON.stringify(patchOf(before, after)), "application/merge-patch+json", "application/yaml");
      setHeld(fresh);
      // A dry run may count up the version, which must be that of the object.
      const version = /^ {2}resourceVersion:.*$/m;
      setText(tidy(made.text).replace(version, version.exec(fresh)?.[0] ?? "$&"));
      setTheirs(null);
      setProblem("");
    } catch (error) {
      setProblem((error as Error).message);
    }
  }

  const changed = held !== null && text !== held;
  useLayoutEffect(() => {
    unsaved.value = changed ? `The YAML of ${kind.kind} ${name} was edited and not applied.` : "";
    return () => { unsaved.value = ""; };
  }, [changed]);
  return (
    <>
      {problem && <p class="cause banner" role="alert">{problem}</p>}
      {theirs && (
        <section aria-label="Conflict">
          <h2>Changed by somebody else meanwhile</h2><Difference lines={theirs} />
          <h2>Your change</h2><Difference lines={diff(held ?? "", text)} />
          <p class="actions"><button type="button" class="main" aria-disabled={busy} onClick={() => once(merge)}>Put my change on their version</button> <button type="button" onClick={() => void load()}>Discard my change</button></p>
        </section>
      )}
      {secret && <p class="faint">Values of Secrets are shown as they are stored (base64).</p>}
      {held !== null && (
        <>
          <label class="editor">YAML of {kind.kind} {name}
            <textarea spellcheck={false} readOnly={!writable} value={text} rows={Math.min(32, text.split("\n").length + 1)}
              onInput={(event) => { setText(event.currentTarget.value); setLines(null); }} />
          </label>
          <p class="actions">
            {!writable && <span class="faint">You may not update {kind.plural}{kind.group ? "." + kind.group : ""}{namespace ? ` in namespace ${namespace}` : ""}.</span>}
            <button type="button" class="main" disabled={!changed} aria-disabled={busy} onClick={() => once(() => write(true))}>Review the change</button>
            <button type="button" disabled={!changed} onClick={() => void load()}>Discard</button>
          </p>
          {lines && (
            <section aria-label="The change">
              <h2>What will be written</h2>
              <Difference lines={lines} />
              <Rehearsal manifest={text} />
              <Command text={`kubectl edit ${kind.plural}${kind.group ? "." + kind.group : ""} ${name}${namespace ? ` -n ${namespace}` : ""}`} />
              <button type="button" class="main" aria-disabled={busy} onClick={() => once(() => write(false))}>Apply</button>
            </section>
          )}
        </>
      )}
    </>
  );
}

const MOST_LINES = 1000;

export function Difference({ lines }: { lines: Line[] }) {
  if (!lines.some((each) => each.sign === "+" || each.sign === "-")) return <p class="faint">Nothing changes.</p>;
  return (
    <div class="diff" tabIndex={0} role="region" aria-label="Differences">
      {lines.slice(0, MOST_LINES).map((each, index) => (
        <div key={index} class={each.sign === "+" ? "add" : each.sign === "-" ? "del" : each.sign === "…" ? "gap" : ""}>{each.sign} {each.text}</div>
      ))}
      {lines.length > MOST_LINES && <div class="gap">… and {lines.length - MOST_LINES} more lines, which are written, too</div>}
    </div>
  );
}
