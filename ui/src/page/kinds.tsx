// Any kind that the API server has, as a table.
import { kinds, byPlural } from "../kind";
import { href, route } from "../route";
import { useRows, type Row } from "../rows";
import { space } from "../space";
import { age, State, Table, type Column } from "../ui";
import { Filter } from "./machines";

const COLUMNS = ["@state", "@version", "@replicas", "@problem"];

export function Kinds() {
  const [, group, plural] = route.value.parts;
  if (plural && group) return <KindTable group={group === "core" ? "" : group} plural={plural} />;
  const text = (route.value.query.get("q") ?? "").toLowerCase();
  const found = kinds.value.filter((each) => `${each.kind} ${each.plural} ${each.group || "core"}`.toLowerCase().includes(text));
  const groups = [...new Set(found.map((each) => each.group))].sort();
  return (
    <>
      <h1>Kinds</h1>
      <Filter count={found.length} of={kinds.value.length} />
      {kinds.value.length > 0 && !found.length && <p class="lonely">No kind matches.</p>}
      <div class="kinds cards">
        {groups.map((each) => (
          <section key={each} aria-label={each || "core"}>
            <h2>{each || "core"}</h2>
            <ul>{found.filter((k) => k.group === each).map((k) => (
              <li key={k.plural}><a href={href(["kinds", each || "core", k.plural])}>{k.kind}</a></li>
            ))}</ul>
          </section>
        ))}
      </div>
    </>
  );
}

function KindTable({ group, plural }: { group: string; plural: string }) {
  const kind = byPlural(plural, group);
  const [rows, problem] = useRows(group, plural, kind?.namespaced === false ? "" : space.value, COLUMNS);
  const text = (route.value.query.get("q") ?? "").toLowerCase();
  const shown = (rows ?? []).filter((each) => !text || each.name.includes(text) || each.namespace.includes(text));
  const columns: Column<Row>[] = [
    { name: "Name", of: (r) => r.name, sort: (r) => r.name, width: "minmax(14rem, 2fr)" },
    { name: "Namespace", of: (r) => r.namespace, sort: (r) => r.namespace },
    { name: "State", of: (r) => <State state={r.deleting ? "Deleting" : r.values[0] ?? ""} />, sort: (r) => r.values[0] ?? "" },
    { name: "Ready", of: (r) => r.values[2], width: "6rem" },
    { name: "Version", of: (r) => r.values[1], width: "6rem" },
    { name: "Age", of: (r) => age(r.created), sort: (r) => r.created, width: "5rem" },
    { name: "What is wrong", of: (r) => <span title={r.values[3]}>{r.values[3]}</span>, width: "minmax(0, 3fr)" },
  ];
  return (
    <>
      <h1>{kind?.kind ?? plural} <small>{group || "core"}</small></h1>
      {problem && <p class="lonely bad">{problem}</p>}
      {!rows && !problem && <p class="lonely">Reading …</p>}
      {rows && <Filter count={shown.length} of={rows.length} />}
      {rows && (
        <Table label={plural} rows={shown} columns={columns} id={(r) => r.uid} empty="There are none."
          link={(r) => href(["object", group || "core", plural, r.namespace || "-", r.name])} />
      )}
    </>
  );
}
