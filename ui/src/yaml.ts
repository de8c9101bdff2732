// Writes plain values as YAML that kubectl reads back as they are.
const PLAIN = /^[A-Za-z_./][A-Za-z0-9_./ -]*$/;
const SPECIAL = /^(true|false|yes|no|on|off|null|y|n|~|\.inf|\.nan)$/i;

function scalar(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value);
  return PLAIN.test(value) && !SPECIAL.test(value) && !value.endsWith(" ") ? value : JSON.stringify(value);
}

export function yaml(value: unknown, indent = ""): string {
  if (Array.isArray(value)) {
    if (!value.length) return " []\n";
    return "\n" + value.map((each) => {
      if (each === null || typeof each !== "object") return `${indent}- ${scalar(each)}\n`;
      return `${indent}-${yaml(each, indent + "  ").replace(/^\n\s*/, " ")}`;
    }).join("");
  }
  if (value !== null && typeof value === "object") {
    const entries = Object.entries(value).filter(([, each]) => each !== undefined);
    if (!entries.length) return " {}\n";
    return "\n" + entries.map(([name, each]) => {
      const inner = each !== null && typeof each === "object";
      return `${indent}${scalar(name)}:${inner ? yaml(each, indent + "  ") : ` ${scalar(each)}\n`}`;
    }).join("");
  }
  return ` ${scalar(value)}\n`;
}

export const document_ = (value: unknown): string => yaml(value).replace(/^\n/, "");
