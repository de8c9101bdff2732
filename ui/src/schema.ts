// The schema of a kind, as the API server publishes it.
import type { Kind } from "./kind";
import { get } from "./request";

export type Schema = {
  type?: string; description?: string; properties?: Record<string, Schema>; required?: string[]; enum?: unknown[];
  items?: Schema; default?: unknown; $ref?: string; allOf?: Schema[]; pattern?: string; minimum?: number; maximum?: number;
  additionalProperties?: unknown; format?: string; "x-kubernetes-int-or-string"?: boolean;
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
  if (!base.properties || depth > 8) return base;
  const properties = Object.fromEntries(Object.entries(base.properties).map(([name, each]) => [name, resolve(each, all, depth + 1)]));
  return { ...base, properties };
}
