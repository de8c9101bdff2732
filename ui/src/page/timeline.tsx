// What happened, newest first. Events stay for an hour, also when their object is gone.
import { amend, route } from "../route";
import { space } from "../space";
import { age, ObjectLink, useTopic } from "../ui";

type Entry = {
  uid: string; time: string; kind: string; namespace: string; name: string; apiVersion: string; type: string; reason: string;
  message: string; count: number; by: string;
};

export function Timeline() {
  const about = route.value.query.get("q") ?? "";
  return (
    <>
      <h1>Timeline</h1>
      <p class="filter"><label>Object <input type="search" value={about} onInput={(event) => amend({ q: event.currentTarget.value })} /></label></p>
      <Happened namespace={space.value} about={about} />
    </>
  );
}

export function Happened({ namespace, about }: { namespace: string; about: string }) {
  const [state, error] = useTopic<{ entries: Entry[]; problem: string }>("timeline", { namespace, about }, (_, message) => message);
  if (error || state?.problem) return <p class="lonely bad">{error || state?.problem}</p>;
  if (!state) return <p class="lonely">Reading the events …</p>;
  if (!state.entries.length) return <p class="lonely">Nothing happened within the last hour.</p>;
  return (
    <ol class="timeline">
      {state.entries.slice(0, 100).map((each) => (
        <li key={each.uid} class={each.type === "Warning" ? "bad" : ""}>
          <time dateTime={each.time} title={each.time}>{age(each.time)} ago</time>
          <ObjectLink {...each} />
          <b>{each.reason}</b>
          <span>{each.message}</span>
          <small class="faint">{each.by}{each.count > 1 ? ` · ${each.count} times` : ""}</small>
        </li>
      ))}
    </ol>
  );
}
