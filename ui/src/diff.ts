// Lines that differ between two texts, with some lines around them; gaps are said, never hidden.
export type Line = { sign: " " | "+" | "-" | "…"; text: string };

export function diff(before: string, after: string, around = 3): Line[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const middle = lcs(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const all: Line[] = [
    ...a.slice(0, start).map((text): Line => ({ sign: " ", text })), ...middle,
    ...a.slice(a.length - end).map((text): Line => ({ sign: " ", text })),
  ];
  const near = all.map((_, i) => all.slice(Math.max(0, i - around), i + around + 1).some((each) => each.sign !== " "));
  const made: Line[] = [];
  for (let i = 0; i < all.length; i++) {
    if (near[i]) { made.push(all[i]!); continue; }
    let until = i;
    while (until < all.length && !near[until]) until++;
    made.push({ sign: "…", text: until - i === 1 ? "1 equal line" : `${until - i} equal lines` });
    i = until - 1;
  }
  return made;
}

function lcs(a: string[], b: string[]): Line[] {
  if (a.length * b.length > 4_000_000) {
    return [...a.map((text): Line => ({ sign: "-", text })), ...b.map((text): Line => ({ sign: "+", text }))];
  }
  const width = b.length + 1;
  const long = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      long[i * width + j] = a[i] === b[j] ? long[(i + 1) * width + j + 1]! + 1 : Math.max(long[(i + 1) * width + j]!, long[i * width + j + 1]!);
    }
  }
  const made: Line[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { made.push({ sign: " ", text: a[i]! }); i++; j++; }
    else if (i < a.length && (j >= b.length || long[(i + 1) * width + j]! >= long[i * width + j + 1]!)) made.push({ sign: "-", text: a[i++]! });
    else made.push({ sign: "+", text: b[j++]! });
  }
  return made;
}
