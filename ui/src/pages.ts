// What the navigation shows.
import { computed, signal } from "@preact/signals";
import { mayReach, send } from "./request";

const ALWAYS = [
  { name: "Clusters", parts: [] as string[] },
  { name: "Machines", parts: ["machines"] },
  { name: "Create", parts: ["create"] },
  { name: "Timeline", parts: ["timeline"] },
  { name: "Templates", parts: ["templates"] },
  { name: "Addresses", parts: ["addresses"] },
  { name: "Add-ons", parts: ["addons"] },
  { name: "Teams", parts: ["teams"] },
  { name: "Kinds", parts: ["kinds"] },
  { name: "Logs", parts: ["logs"] },
  { name: "Plane", parts: ["plane"] },
  { name: "Access", parts: ["access"] },
];

/** Simulators of the plane; none without --sim, and for users who may not see them. */
export const simulators = signal<string[]>([]);

export const pages = computed(() => (simulators.value.length ? [...ALWAYS, { name: "Simulator", parts: ["simulator"] }] : ALWAYS));

export async function findSimulators(): Promise<void> {
  try {
    if (!(await mayReach("get", "/homeport/sim"))) return;
    simulators.value = (JSON.parse((await send("GET", "/homeport/sim")).text) as { name: string }[]).map((each) => each.name);
  } catch {
    simulators.value = [];
  }
}
