// A form made from a schema. What the schema does not describe is kept, and shown as JSON.
import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";
import type { Schema } from "./schema";
import { largest, Sizes, sizes, type Size } from "./size";

export type Value = Record<string, any>;
export type Choices = Record<string, string[]>; // by kind: image, network, cluster, storage, version; hostCpu and hostMemory
export const Offered = createContext<Choices>({});
const DEEPEST = 7;
const OLD = /^(accepted for older|deprecated)/i;

/** Which kind of thing of the hypervisor a field names, by its own name or that of the object around it. */
export function offered(at: string): string {
  const [last = "", before = ""] = at.replace(/\.\d+/g, "").split(".").reverse();
  const name = /^(name|uuid|id|type|kind)$/.test(last) ? (last === "name" ? before : "") : last;
  if (/^providerConfig/.test(name)) return "providerConfig";
  if (/image/i.test(name)) return "image";
  if (/^(subnet|subnets|network|networkName|vmNetwork)$/i.test(name)) return "network";
  if (/^(cluster|prismElement|peCluster|clusterName)$/.test(name)) return "cluster";
  if (/storageContainer|storageClass/i.test(name)) return "storage";
  if (/version$/i.test(name)) return "version";
  return "";
}

function useMost(): Size {
  const { hostCpu = [], hostMemory = [] } = useContext(Offered);
  return largest({ cpu: hostCpu, memory: hostMemory });
}

export const Wrong = ({ text }: { text?: string }) => (text ? <span class="wrong" role="alert">{text}</span> : null);

const empty = (value: any) => value === undefined || value === "" || (typeof value === "object" && value !== null && !Array.isArray(value) && !Object.keys(value).length);

type Common = { at: string; errors: Record<string, string>; level: number };

export function Fields(props: Common & { schema: Schema; value: Value; onChange: (value: Value) => void }) {
  // What an object needs counts only if there is to be one.
  const needed = props.level === 0 || Object.keys(props.value).length > 0;
  const required = new Set(needed ? props.schema.required ?? [] : []);
  const known = Object.keys(props.schema.properties ?? {});
  const most = useMost();
  const names = [...known, ...Object.keys(props.value).filter((each) => !known.includes(each))].sort((a, b) => Number(required.has(b)) - Number(required.has(a)));
  const set = (name: string, value: any) => {
    const next = { ...props.value };
    if (empty(value)) delete next[name];
    else next[name] = value;
    props.onChange(next);
  };
  const schema = (name: string) => props.schema.properties?.[name] ?? {};
  const shown = names.filter((name) => !schema(name).hidden);
  const old = shown.filter((name) => OLD.test(schema(name).description ?? "") && empty(props.value[name]));
  const field = (name: string) => (
    <Field key={name} name={name} at={`${props.at}.${name}`} schema={schema(name)} required={required.has(name)} value={props.value[name]}
      errors={props.errors} level={props.level} onChange={(value) => set(name, value)} />
  );
  return (
    <>
      <Sizes schema={props.schema} value={props.value} most={most} onChange={props.onChange} />
      {shown.filter((name) => !old.includes(name)).map(field)}
      {old.length > 0 && <details class="group"><summary class="faint">{old.length} fields for older manifests</summary>{old.map(field)}</details>}
    </>
  );
}

type FieldProps = Common & { name: string; schema: Schema; required: boolean; value: any; onChange: (value: any) => void };

function fits(schema: Schema, value: any): boolean {
  if (value === undefined || value === null) return true;
  if (schema.properties) return typeof value === "object" && !Array.isArray(value);
  if (schema.type === "array") return Array.isArray(value) && (schema.items?.properties ? value.every((each) => typeof each === "object") : value.every((each) => typeof each !== "object"));
  return schema.type === "string" || schema["x-kubernetes-int-or-string"] ? typeof value === "string" || typeof value === "number" : typeof value !== "object";
}

function Field(props: FieldProps) {
  const { schema, value, onChange } = props;
  const title = schema.description ?? "";
  const inside = Object.keys(props.errors).some((each) => each === props.at || each.startsWith(`${props.at}.`));
  const [open, setOpen] = useState(props.required || inside || !empty(value));
  const head = <span class="name">{props.name}{props.required ? " *" : ""}</span>;
  const usable = fits(schema, value) && props.level < DEEPEST;
  const list = schema.type === "array" && schema.items?.properties;
  // What has no field of its own is said at the field around it.
  const below = usable && (schema.properties || list) ? undefined : Object.keys(props.errors).find((each) => each.startsWith(`${props.at}.`));
  const wrong = <Wrong text={props.errors[props.at] ?? (below && `${below.slice(props.at.length + 1)}: ${props.errors[below]}`)} />;
  if (usable && (schema.properties || list)) {
    return (
      <details class="group" data-field={props.at} open={open || inside} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary title={title}>{head}</summary>
        {title && <small class="faint">{title.split(". ")[0]}</small>}
        {wrong}
        {(open || inside) && (list
          ? <List {...props} items={schema.items!} value={value ?? []} />
          : <Fields schema={schema} value={value ?? {}} at={props.at} errors={props.errors} onChange={onChange} level={props.level + 1} />)}
      </details>
    );
  }
  return <label title={title} data-field={props.at}>{head} {usable ? <Input {...props} /> : <Json value={value} onChange={onChange} placeholder="" />}{wrong}{title && <small class="faint">{title.split(". ")[0]}</small>}</label>;
}

function Input({ name, at, schema, required, value, onChange }: FieldProps) {
  const most = useMost();
  const choices = useContext(Offered)[offered(at)] ?? sizes(name, schema, most);
  const placeholder = schema.default !== undefined ? `default: ${JSON.stringify(schema.default)}` : "";
  const list = choices.length ? `choices-${at}` : undefined;
  const offer = list && <datalist id={list}>{choices.map((each) => <option key={each} value={each} />)}</datalist>;
  if (schema.enum) return <select value={value ?? ""} required={required} onChange={(event) => onChange(event.currentTarget.value)}><option value="">{placeholder || "–"}</option>{schema.enum.map((each) => <option key={String(each)}>{String(each)}</option>)}</select>;
  if (schema.type === "boolean") return <select value={value === undefined ? "" : String(value)} onChange={(event) => onChange(event.currentTarget.value === "" ? undefined : event.currentTarget.value === "true")}><option value="">{placeholder || "–"}</option><option>true</option><option>false</option></select>;
  if (schema.type === "integer" || schema.type === "number") return <><input type="number" value={value ?? ""} min={schema.minimum} list={list} max={schema.maximum} step={schema.type === "number" ? "any" : 1} placeholder={placeholder} required={required} onInput={(event) => onChange(event.currentTarget.value === "" ? undefined : Number(event.currentTarget.value))} />{offer}</>;
  if (schema.type === "array" && (schema.items?.type === "string" || schema.items?.type === "integer")) {
    return <><input list={list} value={(value ?? []).join(", ")} placeholder={placeholder || "separated by commas"} onChange={(event) => {
      const found = event.currentTarget.value.split(",").map((each) => each.trim()).filter(Boolean);
      onChange(found.length ? (schema.items?.type === "integer" ? found.map(Number) : found) : undefined);
    }} />{offer}</>;
  }
  if (schema["x-kubernetes-int-or-string"]) return <><input list={list} value={value ?? ""} placeholder={placeholder} required={required} onInput={(event) => onChange(/^\d+$/.test(event.currentTarget.value) ? Number(event.currentTarget.value) : event.currentTarget.value)} />{offer}</>;
  if (schema.type === "string") return <><input list={list} name={name} value={value ?? ""} placeholder={placeholder} required={required} onInput={(event) => onChange(event.currentTarget.value)} />{offer}</>;
  return <Json value={value} onChange={onChange} placeholder={placeholder} />;
}

function List(props: Omit<FieldProps, "value"> & { items: Schema; value: Value[] }) {
  const put = (next: Value[]) => props.onChange(next.length ? next : undefined);
  return (
    <>
      {props.value.map((each, index) => (
        <fieldset class="choice" key={index}><legend>{props.name} {index + 1}</legend>
          <Fields schema={props.items} value={each} at={`${props.at}.${index}`} errors={props.errors} level={props.level + 1} onChange={(changed) => put(props.value.map((old, at) => (at === index ? changed : old)))} />
          <button type="button" onClick={() => put(props.value.filter((_, at) => at !== index))}>Remove {props.name} {index + 1}</button>
        </fieldset>
      ))}
      <button type="button" onClick={() => put([...props.value, {}])}>Add to {props.name}</button>
    </>
  );
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
