/** What cannot be the same over HTTP and in process, each with its reason; all else has to be. */
import type { Recorded } from "./recording.ts";
import type { Plain } from "./use.ts";

export type LevelName = "0.9" | "0.43";

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
  /** Only where this level is compared. */
  readonly level?: LevelName;
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
    text: (text) => text.replaceAll(/\/\S*\/modhost-clients-\w+\/(http|today|process)\//g, "/FOLDER/"),
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
    methods: /^(dht|routing)\.(get|put)$/,
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
    reason: "that level tells no times of files",
    methods: /^files\.stat$/,
    fields: /^mtime$/,
    leftOut: true,
    level: "0.9",
  },
  {
    reason: "announcements have begun at another moment, and some are on their way",
    methods: /^provide\.stat$/,
    fields:
      /^(since|ongoing|past|queues|keys|next_reprovide_at|cycle_start|current_time_offset|uptime|active\w*|queued\w*)$/,
  },
  {
    reason:
      "the other's record is here already, or has to be asked for; that it names the other is looked at by itself",
    methods: /^(dht|routing)\.findProvs$/,
    fields: /^stream$/,
  },
  {
    reason: "over HTTP only the event of the value is sent, as by the reference; in the process the others as well",
    methods: /^routing\.get$/,
    fields: /^stream$/,
  },
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
export function comparable({ call, outcome }: Recorded, level: LevelName): Plain {
  const method = call.slice(0, call.indexOf("("));
  const rules = unavoidable.filter(
    (rule) => (rule.methods?.test(method) ?? true) && (rule.level === undefined || rule.level === level),
  );
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
export interface LaterAnswer {
  readonly reason: string;
  /**
   * What the failure of its use says, or the difference from the node in process: the method, and
   * what it gave.
   */
  readonly shows: RegExp;
  /** Whose library; left out, all. */
  readonly clients?: readonly string[];
}

const http = ["ipfs-http-client"];

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
    clients: http,
  },
  {
    reason: "routing has taken the place of dht",
    shows: /^dht\.(?:findPeer|provide|findProvs|get|put): removed, use 'ipfs routing' instead$/,
    clients: http,
  },
  {
    reason: "no list of bootstrap peers is built in: the word auto stands for one",
    shows: /^bootstrap\.reset: no bootstrap peers to add$/,
    clients: http,
  },
  {
    reason: "so none of them is there to be removed",
    shows: /^bootstrap\.clear: .*\{"Peers":\[\]\}/s,
    clients: http,
  },
  { reason: "dns is no more", shows: /^dns: .*404 page not found/s, clients: http },
  { reason: "dns is no more", shows: /^mount: .*404 page not found/s },
];

/**
 * What the level 0.43 gives otherwise than the node in process. The node has no level: where it can
 * do either, an option of the call chooses, and what a client leaves out is what version 0.9 does.
 */
export const laterDifferences: readonly LaterAnswer[] = [
  { reason: "the version is that of the level", shows: /^diag\.sys: .*"ipfs_version":"0\.43\.0"/s },
  { reason: "the version is that of the level", shows: /^version: .*"repo":"18".*"version":"0\.43\.0".*"repo":"11"/s },
  { reason: "the version of repos", shows: /^repo\.version: .*"18".*"11"/s },
  { reason: "the version of the repo", shows: /^(repo\.stat|stats\.repo): .*fs-repo@18.*fs-repo@11/s },
  {
    reason: "no version of a protocol is told, and no commit of the program",
    shows: /^id: over HTTP {2}(?![^\n]*protocolVersion)[^\n]*\n.*"protocolVersion":"ipfs\/0\.1\.0"/s,
  },
  {
    reason: "entries of archives without a time have the fraction of the present second",
    shows: /^get: .*PaxHeaders.*\n/s,
  },
  {
    reason: "blocks that are put are raw ones of CID version 1; in process the option format says so",
    shows: /^block\.\w+: .*CID bafkreifpa3bzd6.*\n.*CID Qma7t3CVGhGk5C1/s,
  },
  {
    reason: "keys of Import are shown that are not set",
    shows: /^config\.(getAll|replace): .*"Import\\?":.*\n(?!.*Import)/s,
  },
  {
    reason: "what is left of a path begins with a slash",
    shows: /^dag\.resolve: .*"remainderPath":"\/one".*"remainderPath":"one"/s,
  },
  {
    reason: "what works on objects without UnixFS is no more",
    shows:
      /^object\.(new|get|data|links|stat|patch\.(appendData|setData)): over HTTP {2}(.*removed, use 'ipfs dag'|undefined)/s,
    clients: http,
  },
  {
    reason: "this client makes objects by dag.put, whose CIDs are of version 1",
    shows: /^object\.put: .*CID bafybei.*CID Qm/s,
    clients: http,
  },
  {
    reason: "what was put has other CIDs, and so has what a collection of garbage finds",
    shows: /^repo\.gc: /s,
  },
  {
    reason: "no list of bootstrap peers is built in: the word auto stands for one",
    shows: /^bootstrap\.reset: .*no bootstrap peers to add/s,
    clients: http,
  },
  { reason: "so none of them is there to be removed", shows: /^bootstrap\.clear: .*\{"Peers":\[\]\}/s, clients: http },
  { reason: "what was not asked about a peer is left out", shows: /^swarm\.peers: .*\n.*"latency":"","muxer":""/s },
  {
    reason: "no length of a queue of announcements is told",
    shows: /^(bitswap\.stat|stats\.bitswap): .*\n.*"provideBufLen":/s,
  },
  {
    reason: "routing has taken the place of dht",
    shows: /^dht\.\w+: over HTTP {2}(undefined|.*removed, use 'ipfs routing' instead)/s,
    clients: http,
  },
  { reason: "dns is no more", shows: /^dns: .*404 page not found/s, clients: http },
];
