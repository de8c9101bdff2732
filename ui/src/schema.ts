// The schema of a kind, as the API server publishes it.
import type { Kind } from "./kind";
import { get } from "./request";

export type Schema = {
  type?: string; description?: string; properties?: Record<string, Schema>; required?: string[]; enum?: unknown[];
  items?: Schema; default?: unknown; $ref?: string; allOf?: Schema[]; pattern?: string; minimum?: number; maximum?: number;
  additionalProperties?: unknown; anyOf?: Schema[]; oneOf?: Schema[]; format?: string; hidden?: boolean; "x-kubernetes-int-or-string"?: boolean;
};

const held = new Map<string, any>();

export async function schemaOf(kind: Kind): Promise<Schema> {
  const path = kind.group ? `/openapi/v3/apis/${kind.group}/${kind.version}` : `/openapi/v3/api/${kind.version}`;
  if (!held.has(path)) held.set(path, await get(path));
  const all: Record<string, any> = held.get(path).components?.schemas ?? {};
  const found = Object.values(all).find((each) =>
    (each["x-kubernetes-group-version-kind"] ?? []).some((id: any) => id.kind === kind.kind && id.group === kind.group && id.version === kind.version));
  return resolve(found ?? {}, all, 0);
}

function resolve(schema: Schema, all: Record<string, Schema>, depth: number): Schema {
  const ref = schema.$ref ?? schema.allOf?.[0]?.$ref;
  const base = ref ? { ...all[ref.split("/").pop()!], ...schema, $ref: undefined, allOf: undefined } : schema;
  return simple(base, (each) => resolve(each, all, depth + 1), depth);
}

/** Schemas that are not of Kubernetes allow alternatives: a text is the simplest to type. */
export function plain(schema: Schema): Schema {
  return simple(schema, plain, 0);
}

function simple(given: Schema, inner: (schema: Schema) => Schema, depth: number): Schema {
  const some = given.anyOf ?? given.oneOf;
  const chosen = !given.type && !given["x-kubernetes-int-or-string"] && some?.length ? some.find((each) => each.type === "string") ?? some.find((each) => each.type) : undefined;
  const base = chosen ? { ...chosen, description: given.description ?? chosen.description } : given;
  if (depth > 12) return base;
  if (base.items) return { ...base, items: inner(base.items) };
  if (!base.properties) return base;
  const properties = Object.fromEntries(Object.entries(base.properties).map(([name, each]) => [name, inner(each)]));
  return { ...base, properties };
}
