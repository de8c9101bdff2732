// Ranges of IP addresses as numbers: IPv4 and IPv6.
export type Range = { first: bigint; last: bigint };
export type Held = Range & { kind: "used" | "reserved"; by: string; link?: string };

export function number(text: string): bigint {
  if (!text.includes(":")) return text.split(".").reduce((sum, part) => sum * 256n + BigInt(part), 0n);
  const [head = "", tail] = text.split("::");
  const parts = (half: string) => half.split(":").filter(Boolean);
  const [left, right] = [parts(head), tail === undefined ? [] : parts(tail)];
  const all = [...left, ...Array(8 - left.length - right.length).fill("0"), ...right];
  return all.reduce((sum: bigint, part: string) => sum * 65536n + BigInt(`0x${part}`), 0n);
}

export function text(value: bigint, six: boolean): string {
  if (!six) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join(".");
  return Array.from({ length: 8 }, (_, index) => ((value >> BigInt(16 * (7 - index))) & 65535n).toString(16)).join(":").replace(/(^|:)0(:0)+(:|$)/, "::");
}

/** Of `10.0.0.1`, `10.0.0.1-10.0.0.9` or `10.0.0.0/24`; null for what is none of these. */
export function range(given: string): Range | null {
  try {
    const [address = "", length] = given.trim().split("/");
    if (length !== undefined) {
      const size = 1n << BigInt((address.includes(":") ? 128 : 32) - Number(length));
      const first = (number(address) / size) * size;
      return { first, last: first + size - 1n };
    }
    const [first = "", last = first] = given.split("-").map((each) => each.trim());
    return { first: number(first), last: number(last) };
  } catch {
    return null;
  }
}

export type Cell = { first: bigint; last: bigint; kind: "free" | "used" | "reserved" | "partly"; share: number; by: string[] };
const MOST = 256n;

/** At most 256 cells: one for each address of a small pool, one for several of a large one. */
export function cells(ranges: Range[], held: Held[]): Cell[] {
  const total = ranges.reduce((sum, each) => sum + each.last - each.first + 1n, 0n);
  const size = total <= MOST ? 1n : (total + MOST - 1n) / MOST;
  const made: Cell[] = [];
  for (const each of ranges) for (let first = each.first; first <= each.last; first += size) {
    const last = first + size - 1n < each.last ? first + size - 1n : each.last;
    const here = held.filter((one) => one.first <= last && one.last >= first);
    const taken = here.reduce((sum, one) => sum + (one.last < last ? one.last : last) - (one.first > first ? one.first : first) + 1n, 0n);
    const share = Number((taken * 100n) / (last - first + 1n)) / 100;
    const kind = !here.length ? "free" : share < 1 ? "partly" : here.some((one) => one.kind === "used") ? "used" : "reserved";
    made.push({ first, last, kind, share, by: here.map((one) => one.by) });
  }
  return made;
}
