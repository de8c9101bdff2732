// What the navigation shows.
export const PAGES = [
  { name: "Clusters", parts: [] as string[] },
  { name: "Machines", parts: ["machines"] },
  { name: "Create", parts: ["create"] },
  { name: "Timeline", parts: ["timeline"] },
  { name: "Kinds", parts: ["kinds"] },
  { name: "Logs", parts: ["logs"] },
  { name: "Plane", parts: ["plane"] },
  { name: "Access", parts: ["access"] },
];
