// A table's rows as the server sends them: identity and age first, then the columns that were asked for.
import { useTopic } from "./ui";

export type Row = { uid: string; namespace: string; name: string; created: string; deleting: boolean; values: any[] };
export type Rows = { rows: Map<string, Row>; problem: string; version: number };

export function useRows(group: string, plural: string, namespace: string, columns: unknown[]): [Row[] | null, string] {
  const [state, error] = useTopic<Rows>("rows", { group, plural, namespace, columns }, (held, message) => {
    const next = message.first || held === null ? { rows: new Map<string, Row>(), problem: "", version: 0 } : held;
    for (const each of message.rows as any[][]) {
      const [uid, space, name, created, deleting, ...values] = each;
      next.rows.set(uid, { uid, namespace: space, name, created, deleting, values });
    }
    for (const uid of message.gone ?? []) next.rows.delete(uid);
    return { ...next, problem: message.problem ?? next.problem, version: next.version + 1 };
  });
  return [state ? [...state.rows.values()] : null, error || (state?.problem ?? "")];
}
