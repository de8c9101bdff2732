// What a cluster is made from: ClusterClasses and ClusterTemplates bring schemas of their own into the form.
import { byPlural, path } from "./kind";
import { get, may } from "./request";
import { plain, type Schema } from "./schema";
import { space } from "./space";

export type Blueprint = { namespace: string; name: string; text: string; variables?: { name: string; required?: boolean; schema: Schema }[]; schema?: string };

async function listed(plural: string, group: string): Promise<any[]> {
  const kind = byPlural(plural, group);
  if (!kind) return [];
  if (!(await may("list", group, plural, space.value))) throw new Error(`You may not list ${plural}.${group}${space.value ? ` in namespace ${space.value}` : ""}: name the ${kind.kind} in the YAML`);
  return (await get(path(kind, space.value))).items ?? [];
}

export async function blueprints(api: string): Promise<Blueprint[]> {
  if (api === "Cluster") {
    return (await listed("clusterclasses", "cluster.x-k8s.io")).map((each) => ({
      namespace: each.metadata.namespace, name: each.metadata.name, text: "",
      variables: (each.spec.variables ?? []).map((v: any) => ({ name: v.name, required: v.required, schema: v.schema.openAPIV3Schema })),
    }));
  }
  if (api === "ClusterDeployment") {
    return (await listed("clustertemplates", "k0rdent.mirantis.com")).filter((each) => each.status?.valid).map((each) => ({
      namespace: each.metadata.namespace, name: each.metadata.name, text: each.status.description ?? "", schema: each.status.schemaConfigMapName,
    }));
  }
  return [];
}

/** The schema of the kind, with what the chosen blueprint says about its own part. */
export async function completed(base: Schema, api: string, chosen: Blueprint | undefined): Promise<Schema> {
  if (!chosen) return base;
  if (api === "ClusterDeployment" && chosen.schema) {
    const found = await get(`/api/v1/namespaces/${chosen.namespace}/configmaps/${chosen.schema}`);
    return { ...base, properties: { ...base.properties, template: { hidden: true }, config: plain(JSON.parse(found.data.schema)) }, required: [...(base.required ?? []), "config"] };
  }
  if (api === "Cluster") {
    const topology = base.properties?.topology ?? {};
    const variables: Schema = {
      type: "object", description: `Variables of ClusterClass ${chosen.name}.`, required: chosen.variables!.filter((each) => each.required).map((each) => each.name),
      properties: Object.fromEntries(chosen.variables!.map((each) => [each.name, plain(each.schema)])),
    };
    const inner = { ...topology, properties: { ...topology.properties, classRef: { hidden: true }, variables }, required: [...(topology.required ?? []), "variables"] };
    const hidden = { controlPlaneRef: { hidden: true }, infrastructureRef: { hidden: true } }; // the class makes these
    return { ...base, properties: { ...base.properties, ...hidden, topology: inner }, required: [...(base.required ?? []), "topology"] };
  }
  return base;
}

type Value = Record<string, any>;

/** Variables are a list in manifests, and fields in the form. */
export function toForm(api: string, spec: Value): Value {
  const listed = spec.topology?.variables;
  if (api !== "Cluster" || !Array.isArray(listed)) return spec;
  return { ...spec, topology: { ...spec.topology, variables: Object.fromEntries(listed.map((each: any) => [each.name, each.value])) } };
}

export function fromForm(api: string, spec: Value): Value {
  const fields = spec.topology?.variables;
  if (api !== "Cluster" || !fields || Array.isArray(fields)) return spec;
  return { ...spec, topology: { ...spec.topology, variables: Object.entries(fields).map(([name, value]) => ({ name, value })) } };
}

const VARIABLES = "spec.topology.variables";

/** Where the form shows what the API server says about a field: `spec.topology.variables[size].value.cpu`. */
export function placed(field: string, message: string, body: Value): string {
  const steps = field.replace(/\[["']?([^\]"']*)["']?\]/g, ".$1").split(".");
  const found: string[] = [];
  let at: any = body;
  for (const step of steps) {
    const index = Array.isArray(at) && !/^\d+$/.test(step) ? at.findIndex((each) => each?.name === step) : -1;
    const own = index < 0 ? step : String(index);
    const inner = at?.[own];
    // Variables are fields in the form, by name; their `value` is no level of its own.
    if (found.join(".") === VARIABLES) found.push(inner?.name ?? step);
    else if (!(found.length === 4 && found.slice(0, 3).join(".") === VARIABLES && step === "value")) found.push(own);
    at = inner;
  }
  const missing = found.join(".") === VARIABLES ? /variable "([^"]+)"/.exec(message)?.[1] : undefined;
  return [...found, ...(missing ? [missing] : [])].join(".");
}

export function chooseBlueprint(api: string, body: Value, chosen: Blueprint): Value {
  if (api === "ClusterDeployment") return { ...body, metadata: { ...body.metadata, namespace: chosen.namespace }, spec: { ...body.spec, template: chosen.name } };
  const here = body.metadata.namespace === chosen.namespace;
  const topology = { ...body.spec.topology, classRef: { name: chosen.name, ...(here ? {} : { namespace: chosen.namespace }) } };
  return { ...body, spec: { ...body.spec, topology } };
}

export function blueprintOf(api: string, body: Value): string {
  if (api === "ClusterDeployment") return body.spec?.template ? `${body.metadata.namespace}/${body.spec.template}` : "";
  const ref = body.spec?.topology?.classRef;
  return ref?.name ? `${ref.namespace ?? body.metadata.namespace}/${ref.name}` : "";
}
