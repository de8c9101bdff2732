// The command palette: everything that has a page, by name.
import { signal } from "@preact/signals";
import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import { useClusters } from "./clusters";
import { kinds } from "./kind";
import { href } from "./route";
import { Dialog } from "./ui";
import { pages } from "./pages";
import { user } from "./session";
import { home, spaces } from "./space";
import { link } from "./stream";

const COMBOBOX: any = { role: "combobox", "aria-expanded": "true" };

export const searching = signal(false);
const onClose = () => { searching.value = false; };
const open = (to: string) => { onClose(); location.hash = to; };

// Before the page is drawn: the first key counts.
addEventListener("keydown", (event) => {
  if (!user.value || !(event.ctrlKey || event.metaKey) || event.key !== "k") return;
  event.preventDefault();
  searching.value = true;
});

export function Palette() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [entered, setEntered] = useState(false);
  const [state, error] = useClusters(spaces.value.includes("") ? "" : home.value, { brief: true });
  const all = useMemo(() => [
    ...pages.value.map((each) => ({ label: each.name, hint: "page", to: href(each.parts) })),
    ...(state?.clusters ?? []).map((each) => ({ label: each.name, hint: `${each.kind} in ${each.namespace}`, to: href(["cluster", each.kind, each.namespace, each.name]) })),
    ...kinds.value.map((each) => ({ label: each.kind, hint: each.group || "core", to: href(["kinds", each.group || "core", each.plural]) })),
  ], [state, kinds.value, pages.value]);
  const found = all.filter((each) => `${each.label} ${each.hint}`.toLowerCase().includes(text.toLowerCase())).slice(0, 12);
  // Whoever types a name and Enter in one go means the cluster of that name, also if the list of clusters is not here yet.
  const known = state !== null || error !== "" || link.value === "lost";
  const chosen = entered && known ? found[at] : undefined;
  useLayoutEffect(() => { if (chosen) open(chosen.to); }, [chosen]);
  return (
    <Dialog title="Go to" onClose={onClose}>
      <input type="search" autofocus aria-label="Name of a page, cluster or kind" {...COMBOBOX} aria-controls="found" aria-activedescendant={found[at] ? `found-${at}` : undefined}
        value={text} onInput={(event) => { setText(event.currentTarget.value); setAt(0); setEntered(false); }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") { event.preventDefault(); setAt(Math.min(at + 1, found.length - 1)); }
          if (event.key === "ArrowUp") { event.preventDefault(); setAt(Math.max(at - 1, 0)); }
          if (event.key === "Escape") { event.preventDefault(); onClose(); } // a search field would only lose its text
          if (event.key === "Enter") { event.preventDefault(); setEntered(true); }
        }} />
      <ul id="found" class="found" role="listbox" aria-label="Results">
        {found.map((each, index) => (
          <li key={each.to} id={`found-${index}`} role="option" aria-selected={index === at} onClick={() => open(each.to)}>{each.label} <small class="faint">{each.hint}</small></li>
        ))}
      </ul>
    </Dialog>
  );
}
