// What happened, newest first. Events stay for an hour, also when their object is gone.
import { useState } from "preact/hooks";
import { amend, route } from "../route";
import { space } from "../space";
import { age, ObjectLink, useTopic } from "../ui";

type Entry = {
  uid: string; source: "event" | "provider" | "condition" | "change"; time: string; kind: string; namespace: string; name: string; apiVersion: string; type: string; reason: string;
  message: string; count: number; by: string;
};

const SOURCES: Record<string, string> = { event: "Events", provider: "Provider", condition: "Conditions", change: "Who changed it" };

export function Timeline() {
  const about = route.value.query.get("q") ?? "";
  return (
    <>
      <h1>Timeline</h1>
      <p class="filter"><label>Object <input type="search" value={about} placeholder="its name, or how it begins" onInput={(event) => amend({ q: event.currentTarget.value })} /></label>
        <span class="faint">Also of objects that no longer exist; Events stay for an hour.</span></p>
      <Happened namespace={space.value} about={about} />
    </>
  );
}

const PLACES = ["homeport-timeline", "homeport-timeline-object"];

/** Whether the timeline below a page is open: as its address says, or as it was left. */
export const isBelow = (flat = false): boolean =>
  (route.value.query.get("below") ?? localStorage.getItem(PLACES[Number(flat)]!) ?? (flat ? "timeline" : "")) === "timeline";

type Lower = { namespace: string; about?: string; all?: string; hint?: string; objects?: boolean; flat?: boolean };

/** What happened, at the lower edge of a page: of what the page is about (`about`), or of what is selected in it (`all`: of what, as long as nothing is).
    `flat`: below the rest instead of over it, and open until somebody closes it. */
export function Below({ namespace, about = "", all, hint, objects = false, flat = false }: Lower) {
  const open = isBelow(flat);
  const chosen = route.value.query.get("about") ?? "";
  const toggle = () => { localStorage.setItem(PLACES[Number(flat)]!, open ? "" : "timeline"); amend({ below: open ? "" : "timeline", about: "" }); };
  return (
    <section class={flat ? "below flat" : "below"} aria-label="Timeline">
      <p class="actions">
        <button type="button" aria-expanded={open} onClick={toggle}><span aria-hidden="true">{open ? "▾" : "▸"}</span> Timeline</button>
        {open && all && <label>Object <input type="search" value={chosen} placeholder={all} onInput={(event) => amend({ about: event.currentTarget.value })} /></label>}
        {open && hint && <span class="faint">{hint}</span>}
      </p>
      {open && <Happened namespace={namespace} about={chosen || about} objects={objects} />}
    </section>
  );
}

/** `objects`: also what the objects say themselves, their conditions and who changed them. */
export function Happened({ namespace, about, objects = false }: { namespace: string; about: string; objects?: boolean }) {
  const [state, error] = useTopic<{ entries: Entry[]; total: number; problem: string; users: boolean }>("timeline", { namespace, about, objects }, (_, message) => message);
  const [limit, setLimit] = useState(100);
  const chosen = route.value.query.get("source") ?? "";
  const warnings = route.value.query.get("warnings") === "yes";
  if (error || state?.problem) return <p class="lonely bad">{error || state?.problem}</p>;
  if (!state) return <p class="lonely">Reading the events …</p>;
  const known = Object.keys(SOURCES).filter((each) => state.entries.some((entry) => entry.source === each));
  const entries = state.entries.filter((each) => (!chosen || each.source === chosen) && (!warnings || each.type === "Warning"));
  return (
    <>
      <p class="filter">
        <label>Show <select value={chosen} onChange={(event) => amend({ source: event.currentTarget.value })}><option value="">everything</option>{known.map((each) => <option key={each} value={each}>{SOURCES[each]}</option>)}</select></label>
        <label class="check"><input type="checkbox" checked={warnings} onChange={(event) => amend({ warnings: event.currentTarget.checked ? "yes" : "" })} /> Only warnings</label>
        <span class="faint">{entries.length} of {state.total > state.entries.length ? `the newest ${state.entries.length}; ${state.total} in all` : state.total}</span>
      </p>
      {!state.users && <p class="faint">Changes name the program, not the user: this API server keeps user names in its audit log alone.</p>}
      {!entries.length && <p class="lonely">Nothing happened within the last hour.</p>}
      <ol class="timeline">
        {entries.slice(0, limit).map((each) => (
          <li key={each.uid} class={each.type === "Warning" ? "bad" : ""} data-source={each.source}>
            <time dateTime={each.time} title={each.time}>{age(each.time)} ago</time>
            <ObjectLink {...each} />
            <b>{each.reason.split(/(?<=[a-z])(?=[A-Z])/).map((word, index) => <>{index > 0 && <wbr />}{word}</>)}</b>
            <span>{each.source === "condition" && each.reason.startsWith(`${each.message} is `) ? "" : each.message}</span>
            <small class="faint">{[SOURCES[each.source], each.by && `by ${each.by}`, each.count > 1 && `${each.count} times`].filter(Boolean).join(" · ")}</small>
          </li>
        ))}
      </ol>
      {entries.length > limit && <button type="button" onClick={() => setLimit(limit + 100)}>Show {Math.min(100, entries.length - limit)} more</button>}
    </>
  );
}
