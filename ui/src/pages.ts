// What the navigation shows.
export const PAGES = [
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
