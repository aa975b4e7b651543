/** Turns test vectors into sequences of calls, each with the expected response. */
import { readFileSync } from "node:fs";
import type { BodyTree, Part } from "./content.ts";

/**
 * A part of a response: further fields may exist. `about` in the files and `judge.ts` describe the
 * kinds.
 */
export type Expected = Readonly<Record<string, unknown>>;

type Query = Readonly<Record<string, unknown>>;

export interface VectorStep {
  readonly call: string;
  readonly query?: Query;
  readonly addQuery?: Query;
  readonly input?: BodyTree;
  /** The body, part by part. */
  readonly parts?: readonly Part[];
  readonly bodyText?: string;
  readonly bodyHex?: string;
  /** A body that is sent unchanged. */
  readonly rawBody?: string;
  readonly bodyFrom?: string;
  readonly save?: string;
  readonly saveBody?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly expect?: Expected;
}

interface Repeat {
  readonly repeat: VectorStep & { readonly from: number; readonly to: number };
}

export interface Vector {
  readonly id: string;
  readonly group: string;
  readonly endpoint: string;
  readonly query?: Query;
  readonly input?: BodyTree;
  readonly steps?: readonly (VectorStep | Repeat)[];
  readonly config?: Readonly<Record<string, unknown>>;
  /** Calls that are made afterwards, whatever the result. */
  readonly after?: readonly VectorStep[];
  readonly expect?: Expected;
}

const folder = new URL("../../fixtures/vectors/", import.meta.url);

export const vectorFiles = ["storage", "recorded-storage"] as const;

export function readVectors(file: (typeof vectorFiles)[number]): readonly Vector[] {
  return JSON.parse(readFileSync(new URL(`${file}.json`, folder), "utf8")).vectors;
}

/** Commands that take the input as their body. For all others, it is added before. */
const takesBody = /^(add|block\/put|dag\/(put|import)|object\/put|tar\/add|config\/replace|files\/write)$/;

/** Returns the calls of a vector, or undefined if it is not about calls. */
export function stepsOf(vector: Vector): readonly VectorStep[] | undefined {
  const special = specials[vector.id] ?? byEndpoint[vector.endpoint];
  if (special !== undefined) return special(vector);
  return vector.steps === undefined ? single(vector) : listed(vector);
}

function listed({ steps = [], expect }: Vector): readonly VectorStep[] {
  const all = steps.flatMap((step) => ("repeat" in step ? repeated(step) : [adding(step)]));
  const last = all.at(-1) as VectorStep;
  return expect === undefined ? all : [...all.slice(0, -1), { ...last, expect: { ...last.expect, ...expect } }];
}

/** A call of `add` before the tested one may have its options under another name. */
const adding = ({ addQuery = {}, query = {}, ...step }: VectorStep): VectorStep => ({
  ...step,
  query: { ...query, ...addQuery },
});

function repeated({ repeat: { from, to, ...step } }: Repeat): VectorStep[] {
  const length = Math.abs(to - from) + 1;
  const direction = to < from ? -1 : 1;
  return Array.from({ length }, (_, at) => {
    const number = String(from + at * direction);
    return JSON.parse(JSON.stringify(step).replaceAll("%d", number)) as VectorStep;
  });
}

/** Returns one call, after the calls that prepare its content. */
function single(vector: Vector): VectorStep[] {
  const { endpoint, query = {}, input, expect = {} } = vector;
  const { addQuery = {}, pathSuffix = "", method, requestHeaders, ...rest } = query;
  const step: VectorStep = {
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

type Special = (vector: Vector) => readonly VectorStep[] | undefined;

const byEndpoint: Readonly<Record<string, Special>> = {
  library: () => undefined,
  "path parsing": ({ input, expect }) => {
    const path = (input as unknown as { path: string }).path;
    return [{ call: "resolve", query: { arg: path, offline: "true" }, expect: { pathValid: expect?.valid } }];
  },
  any: (vector) => single({ ...vector, endpoint: "version" }),
  "object/diff": (vector) => (vector.steps === undefined ? compared(vector) : listed(vector)),
};

/** Adds two trees under one name, and compares them. */
function compared({ query: { addQuery = {}, ...query } = {}, input = {}, expect = {} }: Vector): VectorStep[] {
  const trees = (["a", "b"] as const).map(
    (name): VectorStep => ({
      call: "add",
      query: addQuery as Query,
      input: { tree: input[name] } as BodyTree,
      save: name,
    }),
  );
  return [...trees, { call: "object/diff", query: { ...query, arg: ["<a>", "<b>"] }, expect }];
}

const emptyFolder = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

const specials: Readonly<Record<string, Special>> = {
  // This vector is about texts of no particular call.
  "error-json-shape": () => undefined,
  "error-text-shape": () => undefined,
  // This vector needs files that are not available.
  "dag-import-roots-line-shape": () => undefined,
  // This vector needs files on the server's machine. The CID is the same without nocopy;
  // commands/filestore.test.ts adds the files with it.
  "filestore-dir": ({ input = {}, expect = {} }) => [{ call: "add", query: { "raw-leaves": "true" }, input, expect }],
  // Recorded without a network. With one, the call would wait for the missing block.
  "pin-add-missing": (vector) => single({ ...vector, query: { ...vector.query, offline: "true" } }),
  "add-truncated-multipart": (vector) => [{ call: "add", rawBody: "--known-answ", expect: vector.expect ?? {} }],
  "car-export": ({ expect = {}, query = {} }) => [
    { call: "dag/import", bodyHex: String(expect.bodyHex) },
    { call: "dag/export", query, expect },
  ],
  "mfs-flush-root": ({ input = {}, expect = {} }) => [
    { call: "add", input, query: { pin: "false" }, save: "added" },
    // The content of the tree has to be the content of the root.
    ...Object.keys((input.tree as { dir: BodyTree }).dir).map(
      (name): VectorStep => ({ call: "files/cp", query: { arg: [`/ipfs/<added>/${name}`, `/${name}`] } }),
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
      ...Object.entries(modes).flatMap(([name, kinds]): VectorStep[] => {
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

/** Returns CIDs of the tree that vectors of pins use, by their names for them. */
function pinTreeHashes(): Readonly<Record<string, string>> {
  const tree = readVectors("storage").find(({ id }) => id === "pin-tree");
  return (tree?.expect?.allHashes ?? {}) as Record<string, string>;
}

/** Values for placeholders that exist on any node. */
export const wellKnown: Readonly<Record<string, string>> = { "any dag-pb cid": emptyFolder };
