/** Turns the test vectors of Kubo 0.43 into steps. `about` in the file explains the fields. */
import { readFileSync } from "node:fs";
import type { Part } from "./content.ts";
import type { Expected, Vector, VectorStep } from "./plan.ts";

type Query = Readonly<Record<string, string>>;

interface Recorded {
  readonly id: string;
  readonly group: string;
  readonly endpoint: string;
  readonly query?: Query;
  readonly parts?: readonly Part[];
  readonly profile?: string;
  readonly config?: Query;
  readonly steps?: readonly { readonly endpoint: string; readonly query?: Query; readonly parts?: readonly Part[] }[];
  /** Calls with their queries. */
  readonly cleanup?: readonly string[];
  readonly expect: Expected & { readonly events?: readonly unknown[]; readonly eventsAre?: string };
}

const file = new URL("../../fixtures/vectors/level-0.43.json", import.meta.url);

export function readLaterVectors(): readonly Vector[] {
  return (JSON.parse(readFileSync(file, "utf8")).vectors as readonly Recorded[]).map(vectorOf);
}

function vectorOf({
  id,
  group,
  endpoint,
  query,
  parts,
  profile,
  config,
  steps = [],
  cleanup = [],
  expect,
}: Recorded): Vector {
  const own: VectorStep = {
    call: endpoint,
    ...(query && { query }),
    ...(parts && { parts }),
    expect: expected(expect),
  };
  const changes = [
    ...(profile === undefined ? [] : [{ call: "config/profile/apply", query: { arg: profile } }]),
    ...Object.entries(config ?? {}).map(([key, value]) => ({ call: "config", query: { arg: [key, value] } })),
  ];
  const emptied = { call: "config", query: { arg: ["Import", "null"], json: "true" } };
  return {
    id,
    group,
    endpoint,
    // Settings of imports take effect at once, so vectors that change them come last.
    ...(changes.length > 0 && { config: {} }),
    steps: [...changes, ...steps.map(({ endpoint: call, ...others }) => ({ call, ...others })), own],
    after: [...cleanup.map(called), ...(changes.length > 0 ? [emptied] : [])],
  };
}

/** Parses a call that is written with its query. */
function called(text: string): VectorStep {
  const [call = "", query = ""] = text.split("?");
  return { call, query: Object.fromEntries(new URLSearchParams(query)) };
}

function expected({ events, eventsAre, ...others }: Recorded["expect"]): Expected {
  if (events === undefined) return others;
  return eventsAre === "the last" ? { ...others, lastJsonLine: events[0] } : { ...others, jsonLines: events };
}
