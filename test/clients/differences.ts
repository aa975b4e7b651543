/**
 * Results that cannot be the same over HTTP and in process, with the reasons. All other results
 * have to be the same.
 */
import type { LevelName } from "#modules/mod_http_api/rpc/levels.ts";
import type { Recorded } from "./recording.ts";
import type { Plain } from "./use.ts";

interface Difference {
  readonly reason: string;
  /** Names of methods. Without it, all methods. */
  readonly methods?: RegExp;
  /** Makes the text that is compared instead. */
  readonly text?: (text: string) => string;
  /** Names of fields. Only their types are compared. */
  readonly fields?: RegExp;
  /** Whether such a field may also be missing. */
  readonly leftOut?: boolean;
  /** Only compare at this level. */
  readonly level?: LevelName;
  /** Whether the order of a stream is ignored. */
  readonly unordered?: boolean;
}

const unavoidable: readonly Difference[] = [
  {
    reason: "each process listens on a free port",
    text: (text) => text.replaceAll(/(\/(tcp|udp)\/|127\.0\.0\.1:)\d+/g, "$1PORT"),
  },
  {
    reason: "each repo has a folder of its own",
    text: (text) => text.replaceAll(/\/\S*\/modhost-clients-\w+\/(http|today|process)\//g, "/FOLDER/"),
  },
  {
    reason: "entries of an archive have the time of the call, which changes the checksum of their headers",
    methods: /^get$/,
    text: (text) => text.replaceAll(/1\d{10}\0\d{6}\0 /g, "TIME"),
  },
  {
    reason: "the client returns the id of the last event as text, although its types say that it is a peer id",
    methods: /^dht\.query$/,
    text: (text) => text.replace(/^peer /, ""),
  },
  {
    reason: "a record of a name contains the current time, which changes its signature",
    methods: /^(dht|routing)\.(get|put)$/,
    text: (text) => text.replaceAll(/(bytes \w{100})\w+/g, "$1 and so on"),
  },
  { reason: "the client adds its own name", methods: /^version$/, fields: /^ipfs-http-client$/, leftOut: true },
  { reason: "keys are random", methods: /^key\.(gen|list|rename|rm)$/, fields: /^id$/ },
  {
    reason: "round-trip times differ",
    methods: /^ping$/,
    fields: /^time$/,
    text: (text) => text.replace(/latency: .*ms$/, "latency: TIME"),
  },
  { reason: "the amount of sent data depends on the time", methods: /^stats\.bw$/, fields: /^(rate|total)/ },
  {
    reason: "level 0.9 reports no times of files",
    methods: /^files\.stat$/,
    fields: /^mtime$/,
    leftOut: true,
    level: "0.9",
  },
  {
    reason: "announcements began at another time, and some are still running",
    methods: /^provide\.stat$/,
    fields:
      /^(since|ongoing|past|queues|keys|next_reprovide_at|cycle_start|current_time_offset|uptime|active\w*|queued\w*)$/,
  },
  {
    reason:
      "the record of the other node is stored already, or has to be requested; another test checks that it names the other node",
    methods: /^(dht|routing)\.findProvs$/,
    fields: /^stream$/,
  },
  {
    reason:
      "over HTTP only the event of the value is sent, like the reference; in process, the other events are returned, too",
    methods: /^routing\.get$/,
    fields: /^stream$/,
  },
  {
    reason: "LMDB grows in pages, and some of them are allocated later",
    methods: /^(repo\.stat|stats\.repo)$/,
    fields: /^repoSize$/,
  },
  {
    reason: "the garbage collection visits blocks in the order of a hash table",
    methods: /^repo\.gc$/,
    unordered: true,
  },
  {
    reason: "other programs use memory and disk, too",
    methods: /^diag\.sys$/,
    fields: /^(memory|diskinfo|numgoroutines)$/,
  },
];

const byText = (one: Plain, other: Plain) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1);

/** Returns a recorded call without the parts that cannot be the same. */
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

/** A method whose result at level 0.43 differs from that at level 0.9. */
export interface LaterResult {
  readonly reason: string;
  /**
   * Matches the error of the method's use, or the difference from the node in process: the method
   * and its result.
   */
  readonly shows: RegExp;
  /** Names of client libraries. Without it, all. */
  readonly clients?: readonly string[];
}

const http = ["ipfs-http-client"];

export const laterResults: readonly LaterResult[] = [
  { reason: "the version is that of the level", shows: /^version: .*version: '0\.43\.0'/s },
  { reason: "the rest of a path begins with a slash", shows: /^dag\.resolve: .*remainderPath: '\/one'/s },
  { reason: "the version of repos", shows: /^repo\.version: .*'18' !== '11'/s },
  { reason: "the version of the repo", shows: /^repo\.stat: .*fs-repo@18/s },
  { reason: "the version of the repo, by its other name", shows: /^stats\.repo: .*fs-repo@18/s },
  {
    reason: "commands for objects without UnixFS do not exist",
    shows:
      /^object\.(?:new|get|data|links|stat|patch\.(?:appendData|setData)): removed, use 'ipfs dag' or 'ipfs files' instead$/,
    clients: http,
  },
  {
    reason: "routing has replaced dht",
    shows: /^dht\.(?:findPeer|provide|findProvs|get|put): removed, use 'ipfs routing' instead$/,
    clients: http,
  },
  {
    reason: "there is no built-in list of bootstrap peers: the word auto stands for one",
    shows: /^bootstrap\.reset: no bootstrap peers to add$/,
    clients: http,
  },
  {
    reason: "so there is no bootstrap peer to remove",
    shows: /^bootstrap\.clear: .*\{"Peers":\[\]\}/s,
    clients: http,
  },
  { reason: "dns does not exist", shows: /^dns: .*404 page not found/s, clients: http },
  { reason: "dns does not exist", shows: /^mount: .*404 page not found/s },
];

/**
 * Results at level 0.43 that differ from the node in process. The node has no level: where it
 * supports both behaviours, an option of the call selects one, and the default is that of version
 * 0.9.
 */
export const laterDifferences: readonly LaterResult[] = [
  { reason: "the version is that of the level", shows: /^diag\.sys: .*"ipfs_version":"0\.43\.0"/s },
  { reason: "the version is that of the level", shows: /^version: .*"repo":"18".*"version":"0\.43\.0".*"repo":"11"/s },
  { reason: "the version of repos", shows: /^repo\.version: .*"18".*"11"/s },
  { reason: "the version of the repo", shows: /^(repo\.stat|stats\.repo): .*fs-repo@18.*fs-repo@11/s },
  {
    reason: "no protocol version and no commit of the program is reported",
    shows: /^id: over HTTP {2}(?![^\n]*protocolVersion)[^\n]*\n.*"protocolVersion":"ipfs\/0\.1\.0"/s,
  },
  {
    reason: "entries of archives without a time have the fraction of the current second",
    shows: /^get: .*PaxHeaders.*\n/s,
  },
  {
    reason: "stored blocks are raw and have CID version 1; in process the option format selects that",
    shows: /^block\.\w+: .*CID bafkreifpa3bzd6.*\n.*CID Qma7t3CVGhGk5C1/s,
  },
  {
    reason: "keys of Import are listed although they are not set",
    shows: /^config\.(getAll|replace): .*"Import\\?":.*\n(?!.*Import)/s,
  },
  {
    reason: "the rest of a path begins with a slash",
    shows: /^dag\.resolve: .*"remainderPath":"\/one".*"remainderPath":"one"/s,
  },
  {
    reason: "commands for objects without UnixFS do not exist",
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
    reason: "stored objects have other CIDs, and so have the blocks that a garbage collection finds",
    shows: /^repo\.gc: /s,
  },
  {
    reason: "there is no built-in list of bootstrap peers: the word auto stands for one",
    shows: /^bootstrap\.reset: .*no bootstrap peers to add/s,
    clients: http,
  },
  { reason: "so there is no bootstrap peer to remove", shows: /^bootstrap\.clear: .*\{"Peers":\[\]\}/s, clients: http },
  {
    reason: "properties of a peer that were not requested are left out",
    shows: /^swarm\.peers: .*\n.*"latency":"","muxer":""/s,
  },
  {
    reason: "the length of the queue of announcements is not reported",
    shows: /^(bitswap\.stat|stats\.bitswap): .*\n.*"provideBufLen":/s,
  },
  {
    reason: "routing has replaced dht",
    shows: /^dht\.\w+: over HTTP {2}(undefined|.*removed, use 'ipfs routing' instead)/s,
    clients: http,
  },
  { reason: "dns does not exist", shows: /^dns: .*404 page not found/s, clients: http },
];
