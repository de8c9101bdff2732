// Pools of addresses as maps: free, used, reserved, and who has each.
import { cells, number, range, text, type Held, type Range } from "../address";
import { byPlural, kinds } from "../kind";
import { href } from "../route";
import { useRows, type Row } from "../rows";
import { space } from "../space";
import { Command, Table, type Column } from "../ui";

const IPAM = "ipam.cluster.x-k8s.io";
const BUTLER = "butler.butlerlabs.dev";

type Pool = { title: string; link: string; ranges: Range[]; held: Held[]; six: boolean; listed: string };

const present = <T,>(found: (T | null)[]): T[] => found.filter((each): each is T => each !== null);
const one = (address: string | undefined, by: string): Held[] => (address ? present([range(address)]).map((each) => ({ ...each, kind: "reserved", by })) : []);

/** Network and broadcast address of the subnet: no machine gets these unless the pool says so. */
function edges(spec: any): Held[] {
  if (!spec.prefix || spec.allocateReservedIPAddresses || !spec.addresses?.[0] || String(spec.addresses[0]).includes(":")) return [];
  const subnet = range(`${String(spec.addresses[0]).split(/[-/]/)[0]}/${spec.prefix}`);
  return subnet ? [{ first: subnet.first, last: subnet.first, kind: "reserved", by: "network address" }, { first: subnet.last, last: subnet.last, kind: "reserved", by: "broadcast address" }] : [];
}

function ofCapi(pool: Row, plural: string, kind: string, addresses: Row[]): Pool {
  const spec = pool.values[0] ?? {};
  const mine = addresses.filter((each) => each.values[1]?.name === pool.name && each.values[1]?.kind === kind && (!pool.namespace || each.namespace === pool.namespace));
  return {
    title: `${kind} ${pool.namespace ? pool.namespace + "/" : ""}${pool.name}`, link: href(["object", IPAM, plural, pool.namespace || "-", pool.name]), listed: (spec.addresses ?? []).join(", "),
    ranges: present((spec.addresses ?? []).map(range)), six: String(spec.addresses?.[0] ?? "").includes(":"),
    held: [
      ...mine.map((each): Held => ({ first: number(each.values[0]), last: number(each.values[0]), kind: "used", by: `IPAddressClaim ${each.namespace}/${each.values[2]?.name ?? each.name}`, link: href(["object", IPAM, "ipaddressclaims", each.namespace, each.values[2]?.name ?? each.name]) })),
      ...one(spec.gateway, "gateway"), ...(spec.excludedAddresses ?? []).flatMap((each: string) => one(each, "excluded")), ...edges(spec),
    ],
  };
}

function ofButler(pool: Row, allocations: Row[]): Pool {
  const spec = pool.values[0] ?? {};
  const mine = allocations.filter((each) => each.values[0]?.poolRef?.name === pool.name && each.namespace === pool.namespace && each.values[1]?.startAddress);
  const inner = spec.tenantAllocation ? [range(`${spec.tenantAllocation.start}-${spec.tenantAllocation.end}`)] : [];
  return {
    title: `NetworkPool ${pool.namespace}/${pool.name}`, link: href(["object", BUTLER, "networkpools", pool.namespace, pool.name]), listed: spec.cidr ?? "", six: String(spec.cidr ?? "").includes(":"),
    ranges: present(inner).length ? present(inner) : present([range(spec.cidr ?? "")]),
    held: [
      ...mine.flatMap((each) => present([range(`${each.values[1].startAddress}-${each.values[1].endAddress}`)]).map((found): Held => {
        const cluster = each.values[0].tenantClusterRef ?? {};
        return { ...found, kind: "used", by: `TenantCluster ${cluster.namespace ?? each.namespace}/${cluster.name}`, link: href(["cluster", "TenantCluster", cluster.namespace ?? each.namespace, cluster.name]) };
      })),
      ...(spec.reserved ?? []).flatMap((each: any) => one(each.cidr, each.description || "reserved")),
    ],
  };
}

export function Addresses() {
  const has = (plural: string, group: string) => byPlural(plural, group) !== undefined;
  if (!kinds.value.length) return <><h1>Addresses</h1><p class="lonely">Reading the kinds …</p></>;
  if (!has("inclusterippools", IPAM) && !has("networkpools", BUTLER)) return <><h1>Addresses</h1><p class="lonely">This API server has no pools of addresses.</p></>;
  return (
    <>
      <h1>Addresses</h1>
      <p class="legend"><span class="cell free" /> free <span class="cell used" /> used <span class="cell reserved" /> reserved <span class="cell partly" /> some of several in use</p>
      {has("inclusterippools", IPAM) && <Capi />}
      {has("networkpools", BUTLER) && <Butler />}
      <Command text="kubectl get inclusterippools,globalinclusterippools,ipaddresses,networkpools,ipallocations -A" />
    </>
  );
}

function Capi() {
  const [pools] = useRows(IPAM, "inclusterippools", space.value, [["spec"]]);
  const [global] = useRows(IPAM, "globalinclusterippools", "", [["spec"]]);
  const [addresses, problem] = useRows(IPAM, "ipaddresses", space.value, [["spec", "address"], ["spec", "poolRef"], ["spec", "claimRef"]]);
  const all = [
    ...(pools ?? []).map((each) => ofCapi(each, "inclusterippools", "InClusterIPPool", addresses ?? [])),
    ...(global ?? []).map((each) => ofCapi(each, "globalinclusterippools", "GlobalInClusterIPPool", addresses ?? [])),
  ];
  return <Maps title="Pools of machines' addresses" pools={all} problem={problem} empty="There is no InClusterIPPool: machines get their addresses from the hypervisor's network." />;
}

function Butler() {
  const [pools] = useRows(BUTLER, "networkpools", space.value, [["spec"]]);
  const [allocations, problem] = useRows(BUTLER, "ipallocations", space.value, [["spec"], ["status"]]);
  return <Maps title="Networks of tenant clusters" pools={(pools ?? []).map((each) => ofButler(each, allocations ?? []))} problem={problem} empty="There is no NetworkPool." />;
}

function Maps({ title, pools, problem, empty }: { title: string; pools: Pool[]; problem: string; empty: string }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      {problem && <p class="bad">{problem}</p>}
      {!pools.length && <p class="faint">{empty}</p>}
      {pools.map((each) => <Map key={each.title} pool={each} />)}
    </section>
  );
}

function Map({ pool }: { pool: Pool }) {
  const drawn = cells(pool.ranges, pool.held);
  const total = pool.ranges.reduce((sum, each) => sum + each.last - each.first + 1n, 0n);
  const inside = pool.held.filter((held) => pool.ranges.some((each) => held.first <= each.last && held.last >= each.first));
  const count = (kind: string) => inside.filter((each) => each.kind === kind).reduce((sum, each) => sum + each.last - each.first + 1n, 0n);
  const [used, reserved] = [count("used"), count("reserved")];
  const named = (each: Range) => (each.first === each.last ? text(each.first, pool.six) : `${text(each.first, pool.six)} – ${text(each.last, pool.six)}`);
  const said = `${used} used, ${reserved} reserved, ${total - used - reserved} free of ${total}`;
  const columns: Column<Held>[] = [
    { name: "Address", of: (h) => named(h), sort: (h) => h.first.toString(16).padStart(32, "0"), width: "minmax(14rem, 1fr)" },
    { name: "State", of: (h) => h.kind, sort: (h) => h.kind, width: "8rem" },
    { name: "Held by", of: (h) => (h.link ? <a href={h.link}>{h.by}</a> : h.by), sort: (h) => h.by, width: "minmax(16rem, 2fr)" },
  ];
  return (
    <article class="pool">
      <h3><a href={pool.link}>{pool.title}</a> <small class="faint">{pool.listed}</small></h3>
      <p>{said}{total > 256n ? `; one square is ${(total + 255n) / 256n} addresses` : ""}</p>
      <div class="map" role="img" aria-label={`Map of ${pool.title}: ${said}`}>
        {drawn.map((each) => <span key={String(each.first)} class={`cell ${each.kind}`} title={`${named(each)}: ${each.kind === "partly" ? `${Math.round(each.share * 100)} % in use` : each.kind}${each.by.length ? ` (${each.by.slice(0, 5).join(", ")})` : ""}`} />)}
      </div>
      {inside.length > 0 && <Table label={`Who holds addresses of ${pool.title}`} rows={[...inside].sort((a, b) => (a.first < b.first ? -1 : 1))} columns={columns} id={(h) => `${h.kind}${h.first}${h.by}`} empty="Nobody." />}
    </article>
  );
}
