/** Known answers as sequences of calls, each with what is expected of it. */
import { readFileSync } from "node:fs";
import type { BodyTree, Part } from "./content.ts";

/**
 * A subset of what an answer says: further fields may be there. Kinds: `about` of the files, and
 * `judge.ts`.
 */
export type Expected = Readonly<Record<string, unknown>>;

type Query = Readonly<Record<string, unknown>>;

export interface Step {
  readonly call: string;
  readonly query?: Query;
  readonly addQuery?: Query;
  readonly input?: BodyTree;
  /** The body, part by part. */
  readonly parts?: readonly Part[];
  readonly bodyText?: string;
  readonly bodyHex?: string;
  /** Sent as it is. */
  readonly rawBody?: string;
  readonly bodyFrom?: string;
  readonly save?: string;
  readonly saveBody?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly expect?: Expected;
}

interface Repeat {
  readonly repeat: Step & { readonly from: number; readonly to: number };
}

export interface Vector {
  readonly id: string;
  readonly group: string;
  readonly endpoint: string;
  readonly query?: Query;
  readonly input?: BodyTree;
  readonly steps?: readonly (Step | Repeat)[];
  readonly config?: Readonly<Record<string, unknown>>;
  /** Calls that are made afterwards, whatever came of it. */
  readonly after?: readonly Step[];
  readonly expect?: Expected;
}

const folder = new URL("../../fixtures/vectors/", import.meta.url);

export const vectorFiles = ["storage", "recorded-storage"] as const;

export function readVectors(file: (typeof vectorFiles)[number]): readonly Vector[] {
  return JSON.parse(readFileSync(new URL(`${file}.json`, folder), "utf8")).vectors;
}

/** Commands that take the input as their body; all others find it added. */
const takesBody = /^(add|block\/put|dag\/(put|import)|object\/put|tar\/add|config\/replace|files\/write)$/;

/** The calls of a vector; undefined for one that is none of calls. */
export function stepsOf(vector: Vector): readonly Step[] | undefined {
  const special = specials[vector.id] ?? byEndpoint[vector.endpoint];
  if (special !== undefined) return special(vector);
  return vector.steps === undefined ? single(vector) : listed(vector);
}

function listed({ steps = [], expect }: Vector): readonly Step[] {
  const all = steps.flatMap((step) => ("repeat" in step ? repeated(step) : [adding(step)]));
  const last = all.at(-1) as Step;
  return expect === undefined ? all : [...all.slice(0, -1), { ...last, expect: { ...last.expect, ...expect } }];
}

/** A call of `add` on the way may have its options under another name. */
const adding = ({ addQuery = {}, query = {}, ...step }: Step): Step => ({ ...step, query: { ...query, ...addQuery } });

function repeated({ repeat: { from, to, ...step } }: Repeat): Step[] {
  const length = Math.abs(to - from) + 1;
  const direction = to < from ? -1 : 1;
  return Array.from({ length }, (_, at) => {
    const number = String(from + at * direction);
    return JSON.parse(JSON.stringify(step).replaceAll("%d", number)) as Step;
  });
}

/** One call, behind those by which what it asks for gets there. */
function single(vector: Vector): Step[] {
  const { endpoint, query = {}, input, expect = {} } = vector;
  const { addQuery = {}, pathSuffix = "", method, requestHeaders, ...rest } = query;
  const step: Step = {
    call: `${endpoint}${pathSuffix}`,
    query: rest,
    ...(typeof method === "string" ? { method } : {}),
    ...(requestHeaders === undefined ? {} : { headers: requestHeaders as Record<string, string> }),
    expect,
  };
  if (input === undefined) return [step];
  if (takesBody.test(endpoint)) return [{ ...step, input }];
  const before = "object data" in input ? "dag/put" : "add";
  return [{ call: before, query: addQuery as Query, input, save: "cid" }, step];
}

type Special = (vector: Vector) => readonly Step[] | undefined;

const byEndpoint: Readonly<Record<string, Special>> = {
  library: () => undefined,
  "path parsing": ({ input, expect }) => {
    const path = (input as unknown as { path: string }).path;
    return [{ call: "resolve", query: { arg: path, offline: "true" }, expect: { pathValid: expect?.valid } }];
  },
  any: (vector) => single({ ...vector, endpoint: "version" }),
  "object/diff": (vector) => (vector.steps === undefined ? compared(vector) : listed(vector)),
};

/** Two trees under one name, and what differs between them. */
function compared({ query: { addQuery = {}, ...query } = {}, input = {}, expect = {} }: Vector): Step[] {
  const trees = (["a", "b"] as const).map(
    (name): Step => ({ call: "add", query: addQuery as Query, input: { tree: input[name] } as BodyTree, save: name }),
  );
  return [...trees, { call: "object/diff", query: { ...query, arg: ["<a>", "<b>"] }, expect }];
}

const emptyFolder = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

const specials: Readonly<Record<string, Special>> = {
  // About texts of no call in particular.
  "error-json-shape": () => undefined,
  "error-text-shape": () => undefined,
  // Needs files that are not at hand.
  "dag-import-roots-line-shape": () => undefined,
  // Needs files beside the server; the CID is the same without nocopy, and
  // commands/filestore.test.ts adds it with it.
  "filestore-dir": ({ input = {}, expect = {} }) => [{ call: "add", query: { "raw-leaves": "true" }, input, expect }],
  // Recorded without a network: with one, what is missing is waited for.
  "pin-add-missing": (vector) => single({ ...vector, query: { ...vector.query, offline: "true" } }),
  "add-truncated-multipart": (vector) => [{ call: "add", rawBody: "--known-answ", expect: vector.expect ?? {} }],
  "car-export": ({ expect = {}, query = {} }) => [
    { call: "dag/import", bodyHex: String(expect.bodyHex) },
    { call: "dag/export", query, expect },
  ],
  "mfs-flush-root": ({ input = {}, expect = {} }) => [
    { call: "add", input, query: { pin: "false" }, save: "added" },
    // What is in the tree is to be what is in the root.
    ...Object.keys((input.tree as { dir: BodyTree }).dir).map(
      (name): Step => ({ call: "files/cp", query: { arg: [`/ipfs/<added>/${name}`, `/${name}`] } }),
    ),
    { call: "files/flush", expect: { json: { Cid: expect.cid } } },
  ],
  "pin-mixed": (vector) => {
    const modes = vector.expect?.pinModes as Readonly<Record<string, readonly string[]>>;
    const gone = vector.expect?.gcRemovesAtLeast as readonly string[];
    const names = pinTreeHashes();
    const collected = { jsonLinesInclude: gone.map((cid) => ({ Key: { "/": cid } })) };
    return [
      ...listed({ ...vector, expect: collected }),
      ...Object.entries(modes).flatMap(([name, kinds]): Step[] => {
        const arg = names[name];
        if (kinds.length === 0) return [{ call: "pin/ls", query: { arg }, expect: { status: 500 } }];
        return kinds.map((type) => ({
          call: "pin/ls",
          query: { arg, type },
          expect: { bodyTextContains: `"${type}` },
        }));
      }),
    ];
  },
};

/** CIDs of the tree that vectors of pins speak of, by its names for them. */
function pinTreeHashes(): Readonly<Record<string, string>> {
  const tree = readVectors("storage").find(({ id }) => id === "pin-tree");
  return (tree?.expect?.allHashes ?? {}) as Record<string, string>;
}

/** Placeholders that stand for what is at hand on any node. */
export const wellKnown: Readonly<Record<string, string>> = { "any dag-pb cid": emptyFolder };
