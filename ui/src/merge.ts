// What somebody changed in an object, as a merge patch: it can be applied to a version that others have changed, too.
type Json = any;

const isMap = (value: Json): boolean => typeof value === "object" && value !== null && !Array.isArray(value);

/** The merge patch that makes `after` of `before`. Lists are values: one that changed replaces the other. */
export function patchOf(before: Json, after: Json): Json {
  if (!isMap(before) || !isMap(after)) return after;
  const made: Record<string, Json> = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (!(name in after)) made[name] = null;
    else if (JSON.stringify(before[name]) !== JSON.stringify(after[name])) made[name] = name in before ? patchOf(before[name], after[name]) : after[name];
  }
  return made;
}
