/** What cannot be the same over HTTP and in process, each with its reason; all else has to be. */
import type { Recorded } from "./recording.ts";
import type { Plain } from "./use.ts";

interface Difference {
  readonly reason: string;
  /** Methods by name; without it, all. */
  readonly methods?: RegExp;
  /** What is compared in place of a text. */
  readonly text?: (text: string) => string;
  /** Of fields with such names only the type is compared. */
  readonly fields?: RegExp;
  /** Not even that: the field need not be there. */
  readonly leftOut?: boolean;
  /** A stream is compared without its order. */
  readonly unordered?: boolean;
}

const unavoidable: readonly Difference[] = [
  {
    reason: "each process listens where there is a free port",
    text: (text) => text.replaceAll(/(\/(tcp|udp)\/|127\.0\.0\.1:)\d+/g, "$1PORT"),
  },
  {
    reason: "each repo has a folder of its own",
    text: (text) => text.replaceAll(/\/\S*\/modhost-clients-\w+\/(http|process)\//g, "/FOLDER/"),
  },
  {
    reason: "entries of an archive are as old as the call: time and checksum of their headers",
    methods: /^get$/,
    text: (text) => text.replaceAll(/1\d{10}\0\d{6}\0 /g, "TIME"),
  },
  {
    reason: "the client leaves the id of the last event a text where its own types say a peer id",
    methods: /^dht\.query$/,
    text: (text) => text.replace(/^peer /, ""),
  },
  {
    reason: "a record of a name holds the moment, and its signature",
    methods: /^dht\.(get|put)$/,
    text: (text) => text.replaceAll(/(bytes \w{100})\w+/g, "$1 and so on"),
  },
  { reason: "the client adds its own name", methods: /^version$/, fields: /^ipfs-http-client$/, leftOut: true },
  { reason: "keys are random", methods: /^key\.(gen|list|rename|rm)$/, fields: /^id$/ },
  {
    reason: "no two round trips last the same time",
    methods: /^ping$/,
    fields: /^time$/,
    text: (text) => text.replace(/latency: .*ms$/, "latency: TIME"),
  },
  { reason: "what was sent depends on the moment, too", methods: /^stats\.bw$/, fields: /^(rate|total)/ },
  {
    reason: "LMDB grows in pages, some of them a little later",
    methods: /^(repo\.stat|stats\.repo)$/,
    fields: /^repoSize$/,
  },
  { reason: "collection takes blocks as they lie in a hash table", methods: /^repo\.gc$/, unordered: true },
  {
    reason: "memory and disk are in use by all",
    methods: /^diag\.sys$/,
    fields: /^(memory|diskinfo|numgoroutines)$/,
  },
];

const byText = (one: Plain, other: Plain) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1);

/** A recorded call without what cannot be the same. */
export function comparable({ call, outcome }: Recorded): Plain {
  const method = call.slice(0, call.indexOf("("));
  const rules = unavoidable.filter(({ methods }) => methods === undefined || methods.test(method));
  const asText = (text: string) => rules.reduce((shown, { text: change }) => change?.(shown) ?? shown, text);
  const asValue = (value: Plain): Plain => {
    if (typeof value === "string") return asText(value);
    if (Array.isArray(value)) {
      const values = value.map(asValue);
      return rules.some(({ unordered }) => unordered) ? values.sort(byText) : values;
    }
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).flatMap(([name, each]) => {
        const rule = rules.find(({ fields }) => fields?.test(name));
        if (rule?.leftOut) return [];
        return [[name, rule === undefined ? asValue(each) : `some ${typeof each}`]];
      }),
    );
  };
  return { call: asText(call), outcome: asValue(outcome as unknown as Plain) };
}

/** A method that gives something else at the level 0.43 than at that of version 0.9. */
interface LaterAnswer {
  readonly reason: string;
  /** What the failure of the comparison with version 0.9 says: the method, and what it gave. */
  readonly shows: RegExp;
  /** Whose library; left out, all. */
  readonly clients?: readonly string[];
}

export const laterAnswers: readonly LaterAnswer[] = [
  { reason: "the version is that of the level", shows: /^version: .*version: '0\.43\.0'/s },
  { reason: "what is left of a path begins with a slash", shows: /^dag\.resolve: .*remainderPath: '\/one'/s },
  { reason: "the version of repos", shows: /^repo\.version: .*'18' !== '11'/s },
  { reason: "the version of the repo", shows: /^repo\.stat: .*fs-repo@18/s },
  { reason: "the version of the repo, by its other name", shows: /^stats\.repo: .*fs-repo@18/s },
  {
    reason: "what works on objects without UnixFS is no more",
    shows:
      /^object\.(?:new|get|data|links|stat|patch\.(?:appendData|setData)): removed, use 'ipfs dag' or 'ipfs files' instead$/,
    clients: ["ipfs-http-client"],
  },
  {
    reason: "routing has taken the place of dht",
    shows: /^dht\.(?:findPeer|provide|findProvs|get|put): removed, use 'ipfs routing' instead$/,
    clients: ["ipfs-http-client"],
  },
  {
    reason: "no list of bootstrap peers is built in: the word auto stands for one",
    shows: /^bootstrap\.reset: no bootstrap peers to add$/,
    clients: ["ipfs-http-client"],
  },
  {
    reason: "so none of them is there to be removed",
    shows: /^bootstrap\.clear: .*\{"Peers":\[\]\}/s,
    clients: ["ipfs-http-client"],
  },
  { reason: "dns is no more", shows: /^dns: .*404 page not found/s, clients: ["ipfs-http-client"] },
  { reason: "dns is no more", shows: /^mount: .*404 page not found/s },
];
