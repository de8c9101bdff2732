// Who is logged in. One half of the key is a cookie that scripts can't read; the other half is kept here.
import { signal } from "@preact/signals";
import { held, reread, unsaved } from "./route";
import { home } from "./space";

const PLACE = "homeport-key";
export const user = signal<string>("");
export const problem = signal<string>("");
/** The session ended while the page was open: what was typed stays, hidden, until the same user is back. */
export const lapsed = signal<string>("");

export const key = (): string => localStorage.getItem(PLACE) ?? "";

export function ended(why = "the plane does not know it: it was restarted, or an hour passed without use"): void {
  if (!user.value) return; // the user left
  localStorage.removeItem(PLACE);
  lapsed.value = user.value;
  user.value = "";
  problem.value = `The session ended: ${why}. Log in again, and this tab goes on where it was.`;
}

// Another tab logged in, or the link was opened in this one: it goes on. Cookie and key are those of the browser, so this
// tab acts as the new user from now on, and must not show another name.
addEventListener("storage", (event) => {
  if (event.key === PLACE && event.newValue) void resume();
});
addEventListener("hashchange", () => { if (codeOf()) void resume(); });

async function resume(): Promise<void> {
  const before = lapsed.value || user.value;
  await begin().catch(() => undefined);
  if (!user.value) return;
  if (before !== user.value) { // somebody else, with other rights: nothing of the first user stays
    unsaved.value = "";
    location.reload();
  }
  lapsed.value = problem.value = "";
  back.value++;
}

/** Counts the log-ins after the first: the stream takes the new key. */
export const back = signal(0);
const codeOf = () => new URLSearchParams(location.hash.slice(1)).get("code");

/** Redeems the code of the link, or finds the session of before. */
export async function begin(): Promise<void> {
  const code = codeOf();
  if (code) {
    history.replaceState(null, "", location.pathname + held()); // the code must not stay in the address or the history
    reread();
    const answer = await fetch("session", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }),
    });
    const content = await answer.json();
    if (!answer.ok) {
      problem.value = content.message;
      return;
    }
    localStorage.setItem(PLACE, content.key);
    home.value = content.namespace;
    user.value = content.user;
    return;
  }
  if (!key()) return;
  const answer = await fetch("session", { headers: { "X-Homeport-Key": key() } });
  if (answer.ok) {
    const content = await answer.json();
    home.value = content.namespace;
    user.value = content.user;
  } else localStorage.removeItem(PLACE);
}

export async function leave(): Promise<void> {
  const headers = { "X-Homeport-Key": key() };
  localStorage.removeItem(PLACE);
  user.value = "";
  lapsed.value = "";
  problem.value = "You are logged out.";
  await fetch("session", { method: "DELETE", headers });
}
