// A table's rows as the server sends them: identity and age first, then the columns that were asked for.
import { useTopic } from "./ui";

export type Row = { uid: string; namespace: string; name: string; created: string; deleting: boolean; values: any[] };
type Rows = { list: Row[]; places: Map<string, number>; problem: string };

/** A row that changes is another object at the same place. */
export function useRows(group: string, plural: string, namespace: string, columns: unknown[]): [Row[] | null, string] {
  const [state, error] = useTopic<Rows>("rows", { group, plural, namespace, columns }, (held, message) => {
    const next: Rows = message.first || held === null ? { list: [], places: new Map(), problem: "" } : { ...held, list: held.list.slice() };
    for (const each of message.rows as any[][]) put(next, each);
    if (message.gone?.length) remove(next, new Set(message.gone));
    next.problem = message.problem ?? next.problem;
    return next;
  });
  return [state ? state.list : null, error || (state?.problem ?? "")];
}

function put(rows: Rows, [uid, namespace, name, created, deleting, ...values]: any[]): void {
  const place = rows.places.get(uid) ?? rows.list.length;
  rows.places.set(uid, place);
  rows.list[place] = { uid, namespace, name, created, deleting, values };
}

function remove(rows: Rows, gone: Set<string>): void {
  rows.list = rows.list.filter((each) => !gone.has(each.uid));
  rows.places = new Map(rows.list.map((each, place) => [each.uid, place]));
}

/** Whether it contains `text`, which is in lower case. */
export const matches = (row: Row, text: string): boolean =>
  row.name.includes(text) || row.values.some((each) => typeof each === "string" && each.toLowerCase().includes(text));
