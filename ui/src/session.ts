// Who is logged in. One half of the key is a cookie that scripts can't read; the other half is kept here.
import { signal } from "@preact/signals";
import { reread } from "./route";
import { home } from "./space";

const PLACE = "homeport-key";
export const user = signal<string>("");
export const problem = signal<string>("");

export const key = (): string => localStorage.getItem(PLACE) ?? "";

export function ended(why = "the plane does not know it any more"): void {
  if (!user.value) return; // the user left
  localStorage.removeItem(PLACE);
  user.value = "";
  problem.value = `The session ended: ${why}. Log in again, and this tab goes on where it was.`;
}

// Another tab logged in: this one goes on.
addEventListener("storage", (event) => {
  if (event.key === PLACE && event.newValue && !user.value) location.reload();
});

/** Redeems the code of the link, or finds the session of before. */
export async function begin(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    history.replaceState(null, "", location.pathname); // the code must not stay in the address or the history
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
  problem.value = "You are logged out.";
  await fetch("session", { method: "DELETE", headers });
}
