// Create a cluster: a form made from the schema of the kind.
import { useEffect, useState } from "preact/hooks";
import { kinds, path, type Kind } from "../kind";
import { amend, go, route } from "../route";
import { Refusal, send } from "../request";
import { schemaOf, type Schema } from "../schema";
import { home, space } from "../space";
import { Command, report } from "../ui";
import { document_ } from "../yaml";

const APIS = [
  { kind: "TenantCluster", text: "A tenant cluster of Butler's API: name it, the rest has defaults." },
  { kind: "ClusterDeployment", text: "A cluster from a ClusterTemplate of k0rdent's API." },
  { kind: "Cluster", text: "A Cluster API cluster from a ClusterClass." },
];

export function Create() {
  const chosen = route.value.query.get("api") ?? "TenantCluster";
  const kind = kinds.value.find((each) => each.kind === chosen && APIS.some((api) => api.kind === each.kind));
  return (
    <>
      <h1>Create a cluster</h1>
      <fieldset class="choice"><legend>API</legend>
        {APIS.filter((api) => kinds.value.some((each) => each.kind === api.kind)).map((api) => (
          <label key={api.kind}><input type="radio" name="api" checked={api.kind === chosen} onChange={() => amend({ api: api.kind })} /> <b>{api.kind}</b> <span class="faint">{api.text}</span></label>
        ))}
      </fieldset>
      {kind && <Form key={kind.kind} kind={kind} />}
    </>
  );
}

type Value = Record<string, any>;

function Form({ kind }: { kind: Kind }) {
  const [schema, setSchema] = useState<Schema | null>(null);
  const [name, setName] = useState("");
  const [namespace, setNamespace] = useState(space.value || home.value || "default");
  const [spec, setSpec] = useState<Value>({});
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState("");
  const [checked, setChecked] = useState(false);
  useEffect(() => { schemaOf(kind).then((found) => setSchema(found.properties?.spec ?? {})).catch((error: Error) => setProblem(error.message)); }, [kind]);
  const body = { apiVersion: kind.group ? `${kind.group}/${kind.version}` : kind.version, kind: kind.kind, metadata: { name, namespace }, spec };

  async function write(dry: boolean): Promise<void> {
    setErrors({});
    setProblem("");
    try {
      await send("POST", path(kind, namespace) + (dry ? "?dryRun=All&fieldValidation=Strict" : "?fieldValidation=Strict"), JSON.stringify(body));
      if (dry) { setChecked(true); return; }
      report(`${kind.kind} ${name} was created`, "good");
      go(["cluster", kind.kind, namespace, name]);
    } catch (error) {
      setChecked(false);
      const causes = error instanceof Refusal ? error.body?.details?.causes ?? [] : [];
      const found: Record<string, string> = {};
      for (const each of causes) if (each.field) found[each.field] = each.message;
      setErrors(found);
      setProblem((error as Error).message);
    }
  }

  if (!schema) return <p class="lonely">{problem || "Reading the schema …"}</p>;
  return (
    <form class="form" onSubmit={(event) => { event.preventDefault(); void write(!checked); }} onInput={() => setChecked(false)}>
      {problem && <p class="cause banner" role="alert">{problem}</p>}
      <label>Name <input required value={name} pattern="[a-z0-9]([a-z0-9\-]*[a-z0-9])?" onInput={(event) => setName(event.currentTarget.value)} /><Wrong text={errors["metadata.name"]} /></label>
      <label>Namespace <input required value={namespace} onInput={(event) => setNamespace(event.currentTarget.value)} /></label>
      <Fields schema={schema} value={spec} at="spec" errors={errors} onChange={setSpec} level={0} />
      <details open={checked}><summary>Manifest</summary><pre tabIndex={0}>{document_(body)}</pre></details>
      <Command text={`kubectl apply -f ${name || "cluster"}.yaml`} />
      <button type="submit" class="main">{checked ? "Create" : "Check"}</button>{" "}
      {checked && <span class="good">The API server accepts it.</span>}
    </form>
  );
}

const Wrong = ({ text }: { text?: string }) => (text ? <span class="wrong" role="alert">{text}</span> : null);

function Fields(props: { schema: Schema; value: Value; at: string; errors: Record<string, string>; onChange: (value: Value) => void; level: number }) {
  // What an object needs counts only if there is to be one.
  const needed = props.level === 0 || Object.keys(props.value).length > 0;
  const required = new Set(needed ? props.schema.required ?? [] : []);
  const names = Object.keys(props.schema.properties ?? {}).sort((a, b) => Number(required.has(b)) - Number(required.has(a)));
  const set = (name: string, value: any) => {
    const next = { ...props.value };
    if (value === undefined || value === "" || (typeof value === "object" && !Array.isArray(value) && !Object.keys(value).length)) delete next[name];
    else next[name] = value;
    props.onChange(next);
  };
  return (
    <>
      {names.map((name) => (
        <Field key={name} name={name} at={`${props.at}.${name}`} schema={props.schema.properties![name]!} required={required.has(name)} value={props.value[name]}
          errors={props.errors} level={props.level} onChange={(value) => set(name, value)} />
      ))}
    </>
  );
}

function Field(props: { name: string; at: string; schema: Schema; required: boolean; value: any; errors: Record<string, string>; level: number; onChange: (value: any) => void }) {
  const { schema, value, onChange } = props;
  const title = schema.description ?? "";
  const head = <span class="name">{props.name}{props.required ? " *" : ""}</span>;
  const wrong = <Wrong text={props.errors[props.at]} />;
  if (schema.properties) {
    const inside = Object.keys(props.errors).some((each) => each.startsWith(props.at));
    return (
      <details class="group" open={props.required || inside}>
        <summary title={title}>{head}</summary>
        {wrong}
        {props.level < 4 && <Fields schema={schema} value={value ?? {}} at={props.at} errors={props.errors} onChange={onChange} level={props.level + 1} />}
      </details>
    );
  }
  const placeholder = schema.default !== undefined ? `default: ${JSON.stringify(schema.default)}` : "";
  let input;
  if (schema.enum) {
    input = <select value={value ?? ""} required={props.required} onChange={(event) => onChange(event.currentTarget.value)}><option value="">{placeholder || "–"}</option>{schema.enum.map((each) => <option key={String(each)}>{String(each)}</option>)}</select>;
  } else if (schema.type === "boolean") {
    input = <select value={value === undefined ? "" : String(value)} onChange={(event) => onChange(event.currentTarget.value === "" ? undefined : event.currentTarget.value === "true")}><option value="">{placeholder || "–"}</option><option>true</option><option>false</option></select>;
  } else if (schema.type === "integer" || schema.type === "number") {
    input = <input type="number" value={value ?? ""} min={schema.minimum} max={schema.maximum} placeholder={placeholder} required={props.required} onInput={(event) => onChange(event.currentTarget.value === "" ? undefined : Number(event.currentTarget.value))} />;
  } else if (schema.type === "array" && (schema.items?.type === "string" || schema.items?.type === "integer")) {
    input = <input value={(value ?? []).join(", ")} placeholder={placeholder || "separated by commas"} onChange={(event) => { const found = event.currentTarget.value.split(",").map((each) => each.trim()).filter(Boolean); onChange(found.length ? (schema.items?.type === "integer" ? found.map(Number) : found) : undefined); }} />;
  } else if (schema.type === "string") {
    input = <input value={value ?? ""} placeholder={placeholder} required={props.required} onInput={(event) => onChange(event.currentTarget.value)} />;
  } else {
    input = <Json value={value} onChange={onChange} placeholder={placeholder} />;
  }
  return <label title={title}>{head} {input}{wrong}{title && <small class="faint">{title.split(". ")[0]}</small>}</label>;
}

function Json({ value, onChange, placeholder }: { value: any; onChange: (value: any) => void; placeholder: string }) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value));
  const [wrong, setWrong] = useState("");
  return (
    <>
      <textarea rows={2} value={text} placeholder={placeholder || "as JSON"} spellcheck={false} onInput={(event) => {
        setText(event.currentTarget.value);
        try { onChange(event.currentTarget.value.trim() ? JSON.parse(event.currentTarget.value) : undefined); setWrong(""); }
        catch { setWrong("not valid JSON yet"); }
      }} />
      <Wrong text={wrong} />
    </>
  );
}
