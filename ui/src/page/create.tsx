// Create a cluster: a form made from the schema of the kind, or its YAML; each becomes the other.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { blueprintOf, blueprints, chooseBlueprint, completed, fromForm, placed, toForm, type Blueprint } from "../blueprint";
import { Fields, Offered, Wrong, type Choices, type Value } from "../form";
import { kinds, path, type Kind } from "../kind";
import { amend, go, route, unsaved } from "../route";
import { errand, Refusal, send } from "../request";
import { Rehearsal } from "../rehearsal";
import { useRows } from "../rows";
import { schemaOf, type Schema } from "../schema";
import { Quota } from "../size";
import { home, space } from "../space";
import { Command, Confirm, report, useOnce } from "../ui";
import { document_ } from "../yaml";

const APIS = [
  { kind: "TenantCluster", group: "butler.butlerlabs.dev", text: "A tenant cluster of Butler's API. Only its name is required." },
  { kind: "ClusterDeployment", group: "k0rdent.mirantis.com", text: "A cluster from a ClusterTemplate of k0rdent's API." },
  { kind: "Cluster", group: "cluster.x-k8s.io", text: "A Cluster API cluster from a ClusterClass." },
];

export function Create() {
  const found = APIS.flatMap((api) => kinds.value.filter((each) => each.kind === api.kind && each.group === api.group).map((kind) => ({ ...api, of: kind })));
  const chosen = route.value.query.get("api") ?? found[0]?.kind;
  const kind = found.find((each) => each.kind === chosen)?.of;
  // A look at another API loses nothing.
  const drafts = useRef<Record<string, Draft>>({});
  const [filled, setFilled] = useState<Record<string, boolean>>({});
  const names = Object.keys(filled).filter((each) => filled[each]).join(" and ");
  useLayoutEffect(() => {
    unsaved.value = names && `The form for a ${names} is filled in, and nothing was created.`;
    return () => { unsaved.value = ""; };
  }, [names]);
  return (
    <>
      <h1>Create a cluster</h1>
      <fieldset class="choice"><legend>API</legend>
        {found.map((api) => (
          <label key={api.kind}><input type="radio" name="api" checked={api.kind === chosen} onChange={() => amend({ api: api.kind })} /> <b>{api.kind}</b> <span class="faint">{api.text}</span></label>
        ))}
      </fieldset>
      {kinds.value.length > 0 && !kind && <p class="lonely">This API server has no {chosen ?? "kind that creates clusters"}.</p>}
      {kind && <Form key={kind.kind} kind={kind} drafts={drafts.current} onFilled={(is) => setFilled((before) => ({ ...before, [kind.kind]: is }))} />}
    </>
  );
}

/** What was typed: an object, and its YAML where that is edited. `empty`: how the form began. */
type Draft = { body: Value; text: string | null; empty: Value };

function Form({ kind, drafts, onFilled }: { kind: Kind; drafts: Record<string, Draft>; onFilled: (is: boolean) => void }) {
  const api = kind.kind;
  const [draft] = useState<Draft>(() => {
    const empty = { apiVersion: kind.group ? `${kind.group}/${kind.version}` : kind.version, kind: api, metadata: { name: "", namespace: space.value || home.value || "default" }, spec: {} };
    return drafts[api] ?? { body: empty, text: null, empty };
  });
  const [base, setBase] = useState<Schema | null>(null);
  const [schema, setSchema] = useState<Schema | null>(null);
  const [found, setFound] = useState<Blueprint[]>([]);
  const [body, setBody] = useState<Value>(draft.body);
  const [text, setText] = useState<string | null>(draft.text); // not null: the YAML is edited
  const [version, setVersion] = useState(0); // of what the form is about: the schema, or an object that came from YAML
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState("");
  const [hint, setHint] = useState("");
  const [checked, setChecked] = useState<object[] | null>(null);
  const [choices, setChoices] = useState<Choices>({});
  const [busy, once] = useOnce();
  const { name = "", namespace = "" } = body.metadata ?? {};
  drafts[api] = { body, text, empty: draft.empty };
  const filled = useMemo(() => JSON.stringify(body) !== JSON.stringify(draft.empty), [body]) || (text !== null && text !== document_(body));
  useLayoutEffect(() => onFilled(filled), [filled]);
  const chosen = found.find((each) => `${each.namespace}/${each.name}` === blueprintOf(api, body));

  useEffect(() => {
    const failed = (error: Error) => setProblem(error.message);
    schemaOf(kind).then((read) => setBase(read.properties?.spec ?? {})).catch(failed);
    blueprints(api).then(setFound).catch((error: Error) => setHint(error.message)); // the rest of the form works without
  }, [kind]);
  useEffect(() => { if (base) completed(base, api, chosen).then((next) => { setSchema(next); setVersion((before) => before + 1); }).catch((error: Error) => setProblem(error.message)); }, [base, chosen]);

  const change = (next: Value) => { setBody(next); setChecked(null); };
  const meta = (part: Value) => change({ ...body, metadata: { ...body.metadata, ...part } });

  async function edit(): Promise<void> {
    if (text === null) { setText(document_(body)); return; }
    const read = await parsed();
    if (!read) return;
    setText(null);
    setVersion((before) => before + 1);
  }

  /** The object that the user means now: of the form, or of the YAML. */
  async function parsed(): Promise<Value | null> {
    if (text === null) return body;
    try {
      const read = await errand("parse", { manifest: text });
      if (read.kind !== api) throw new Error(`kind is ${JSON.stringify(read.kind)}: expected ${api}`);
      const whole = { ...read, metadata: read.metadata ?? {}, spec: read.spec ?? {} };
      setBody(whole);
      setProblem("");
      return whole;
    } catch (error) {
      setProblem((error as Error).message);
      return null;
    }
  }

  async function write(dry: boolean): Promise<void> {
    setErrors({});
    setProblem("");
    const meant = await parsed();
    if (!meant) return;
    const where = path(kind, meant.metadata.namespace || home.value || "default");
    try {
      await send("POST", where + (dry ? "?dryRun=All&fieldValidation=Strict" : "?fieldValidation=Strict&fieldManager=homeport-dashboard"), JSON.stringify(meant));
      if (dry) { setChecked([meant]); return; }
      report(`${api} ${meant.metadata.name} was created`, "good");
      unsaved.value = "";
      go(["cluster", api, meant.metadata.namespace || home.value, meant.metadata.name]);
    } catch (error) {
      setChecked(null);
      const causes = error instanceof Refusal ? error.body?.details?.causes ?? [] : [];
      const at: Record<string, string> = {};
      for (const each of causes) if (each.field) at[placed(each.field, each.message, meant)] = each.message;
      setErrors(at);
      setProblem((error as Error).message);
    }
  }

  if (!schema) return <p class="lonely">{problem || "Reading the schema …"}</p>;
  const blueprint = api === "Cluster" ? "ClusterClass" : "ClusterTemplate";
  return (
    <form class="form" onSubmit={(event) => { event.preventDefault(); once(() => write(true)); }}>
      {problem && <p class="cause banner" role="alert">{problem}</p>}
      <Offered.Provider value={choices}>
      {text === null && (
        <>
          <label><span class="name needed">Name</span> <input required value={name} pattern="[a-z0-9]([a-z0-9\-]*[a-z0-9])?" onInput={(event) => meta({ name: event.currentTarget.value })} /><Wrong text={errors["metadata.name"]} /></label>
          <label><span class="name needed">Namespace</span> <input required value={namespace} onInput={(event) => meta({ namespace: event.currentTarget.value })} /><Wrong text={errors["metadata.namespace"]} /></label>
          {found.length > 0 && (
            <label><span class="name needed">{blueprint}</span> <select required value={blueprintOf(api, body)} onChange={(event) => { const next = found.find((each) => `${each.namespace}/${each.name}` === event.currentTarget.value); if (next) change(chooseBlueprint(api, body, next)); }}>
              <option value="">choose …</option>
              {found.map((each) => <option key={each.namespace + each.name} value={`${each.namespace}/${each.name}`}>{each.name} in {each.namespace}</option>)}
            </select>{chosen?.text && <small class="faint">{chosen.text}</small>}</label>
          )}
        </>
      )}
      {hint && <p class="faint">{hint}.</p>}
      <Discovery namespace={namespace} onFound={setChoices} />
      {text === null ? (
          <Fields key={version} schema={schema} value={toForm(api, body.spec)} at="spec" errors={errors} onChange={(spec) => change({ ...body, spec: fromForm(api, spec) })} level={0} />
      ) : (
        <label class="editor">YAML <textarea rows={24} spellcheck={false} value={text} onInput={(event) => { setText(event.currentTarget.value); setChecked(null); }} /></label>
      )}
      </Offered.Provider>
      <p class="actions"><button type="button" onClick={() => once(edit)}>{text === null ? "Edit as YAML" : "Back to the form"}</button></p>
      {text === null && <details><summary>Manifest</summary><pre tabIndex={0}>{document_(body)}</pre></details>}
      {api === "TenantCluster" && <Quota body={body} />}
      {checked && <Rehearsal objects={checked} />}
      <Command text={`kubectl apply -f ${name || "cluster"}.yaml`} />
      <p class="actions"><button type="submit" class={checked ? "" : "main"} aria-disabled={busy}>Check</button> {checked && <Confirm name="Create" busy={busy} onClick={() => once(() => write(false))} />} {checked && <span class="good">The API server accepts it.</span>}</p>
    </form>
  );
}

/** Whose credentials lead to the hypervisor, and what it has. */
function Discovery({ namespace, onFound }: { namespace: string; onFound: (choices: Choices) => void }) {
  const [configs] = useRows("butler.butlerlabs.dev", "providerconfigs", space.value, []);
  const [clusters] = useRows("cluster.x-k8s.io", "clusters", space.value, []);
  const [source, setSource] = useState<string | null>(null);
  const [said, setSaid] = useState("");
  const sources = useMemo(() => [
    ...(configs ?? []).map((each) => ({ label: `ProviderConfig ${each.namespace}/${each.name}`, options: { provider_config: `${each.namespace}/${each.name}` } })),
    ...(clusters ?? []).map((each) => ({ label: `Cluster ${each.namespace}/${each.name}`, options: { cluster: `${each.namespace}/${each.name}` } })),
  ], [configs, clusters]);
  const used = sources.find((each) => each.label === source) ?? (source === null ? sources[0] : undefined);
  useEffect(() => {
    const known = { providerConfig: (configs ?? []).map((each) => each.name) };
    if (!used) { onFound(known); return; }
    let current = true;
    setSaid("Asking the hypervisor …");
    errand("choices", { ...used.options, namespace }).then((found) => {
      if (!current) return;
      const names = (kind: string) => [...new Set<string>(found.entities.filter((each: any) => each.kind === kind).map((each: any) => each.name))].sort();
      const versions = [...new Set<string>(found.entities.map((each: any) => each.details.kubernetes).filter(Boolean))].sort();
      const hosts = (detail: string) => found.entities.filter((each: any) => each.kind === "host").map((each: any) => each.details[detail]).filter(Boolean);
      onFound({ ...known, hostCpu: hosts("cpu"), hostMemory: hosts("memory"), image: names("image"), network: names("network"), cluster: names("cluster"), storage: names("storage"), version: versions });
      setSaid(`${found.total > found.entities.length ? `the first ${found.entities.length} of ` : ""}${found.total} choices from ${found.origin}`);
    }).catch((error: Error) => { if (current) { setSaid(error.message); onFound(known); } });
    return () => { current = false; };
  }, [used?.label, configs?.length]);
  if (!sources.length) return <p class="faint">There is no ProviderConfig and no Cluster with credentials yet, so fields for images and networks offer no choices.</p>;
  return (
    <p class="filter"><label><span class="name">Choices from</span> <select value={used?.label ?? ""} onChange={(event) => setSource(event.currentTarget.value)}><option value="">nowhere</option>{sources.map((each) => <option key={each.label}>{each.label}</option>)}</select></label> <span class="faint" role="status">{said}</span></p>
  );
}
