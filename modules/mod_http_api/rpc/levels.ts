/**
 * The two levels of the API: go-ipfs 0.9 and Kubo 0.43. Both have one table of commands. Commands
 * that Kubo added are declared with `since` and served at both levels. Conflicts are defined in
 * this file, or by a second declaration next to the first (`kubo043` in a file of `commands/`).
 * Commands never check the level by name: they read values from `call.level`.
 */
import { type FailureCode, type Names, NodeError, quote } from "modhost/node";

export type LevelName = "0.9" | "0.43";

/** Values that commands pass on to the node, or show. */
export interface LevelTraits {
  readonly name: LevelName;
  /** The program that this level reproduces, its version, and the version of its repos. */
  readonly program: "go-ipfs" | "kubo";
  /** The name that the program prints for itself. */
  readonly title: string;
  readonly version: string;
  readonly repo: string;
  /**
   * When a directory becomes a shard: if `Experimental.ShardingEnabled` is set, or by the size of
   * its node.
   */
  readonly sharding: "by config" | "by size";
  /** Whether imports use `Import.*` of the configuration for options that a call does not set. */
  readonly importDefaults: boolean;
  /** Whether file commands resolve paths below `/ipns` as names. */
  readonly filesResolveNames: boolean;
  /** Whether a written file of the namespace that has a single raw leaf is stored as that leaf. */
  readonly joinsLeaf: boolean;
  /** Whether unflushed changes of the namespace are refused once there are many. */
  readonly limitsUnflushed: boolean;
  /**
   * Whether archive entries without a time get the current time including the fraction of its
   * second.
   */
  readonly exactNow: boolean;
  /** Maximum bytes of chunks and blocks that are made. */
  readonly maxChunk: number;
  readonly maxBlock: number;
  /** The level whose rules apply to imported archives. */
  readonly importing: LevelName;
  /** Names of codecs and hash functions; those of go-ipfs 0.9 if undefined. */
  readonly names: Names;
  /** Maximum bytes of a block that is inlined into its CID. */
  readonly maxInline: number;
  /** The level whose rules apply to keys of the configuration. */
  readonly configRules: LevelName;
  /** The level whose rules apply when a name is published. */
  readonly publishing: LevelName;
  /** The level whose rules apply to sizes and types of generated and imported keys. */
  readonly keys: LevelName;
  /**
   * How lists name stored blocks: by the CID under which they were stored, or by their multihash.
   */
  readonly storedBlocks: "as stored" | "by multihash";
}

/** HTTP behaviour around the results of commands. */
export interface HttpTraits {
  /**
   * A user agent that contains one of these words must be of the version of this level. Otherwise
   * the request is refused.
   */
  readonly gatedAgents: readonly string[];
  /** Status of a redirect, and its text. */
  readonly moved: { readonly status: 301 | 307; readonly words: string };
  readonly preflight: {
    readonly status: 200 | 204;
    /**
     * If true, there is one Vary header, and the allowed headers are repeated as requested.
     * Otherwise there are three, and the names are canonicalized.
     */
    readonly plainly: boolean;
  };
  /** Whether `;` separates pairs of a query. If not, a pair that contains one is dropped. */
  readonly semicolons: boolean;
  /**
   * Whether content paths among the arguments may be URIs, such as `ipfs://CID/a`, and may contain
   * `//`, `.` and `..`.
   */
  readonly uris: boolean;
  /**
   * Subcommands that only Kubo's command line has. They are not served, nor are they arguments of
   * their parent command.
   */
  readonly commandLineOnly: readonly string[];
  /** Content types of bytes, by command. All other commands have text/plain. */
  readonly bytes: Readonly<Record<string, string | ((options: Readonly<Record<string, unknown>>) => string)>>;
}

const DAG_PB = 0x70;

type Details = Readonly<Record<string, string | number>>;

export interface Level {
  readonly traits: LevelTraits;
  readonly httpTraits: HttpTraits;
  /**
   * Removed commands, including everything below them, with the error that they return; undefined
   * for 404.
   */
  readonly removed: Readonly<Record<string, string | undefined>>;
  /**
   * Error texts that differ from those of the node, by code. `{name}` is replaced by the detail of
   * that name, `{cause}` by the text of the cause at this level. An error without the detail keeps
   * the text of the node.
   */
  readonly wordings: Readonly<Partial<Record<FailureCode, string | ((details: Details) => string | undefined)>>>;
  /**
   * Detects calls that only a client of the other level makes, if it would misread the response. By
   * command; the function receives the values of the arguments and the options, including defaults.
   */
  readonly clashes: Readonly<Record<string, (call: ClashingCall) => boolean>>;
}

/** The parts of a call that `clashes` inspects. */
export interface ClashingCall {
  readonly given: readonly string[];
  /** Number of values in `given` that do not come from the body. */
  readonly queried: number;
  readonly options: Readonly<Record<string, unknown>>;
  /** Whether the call has a multipart body. */
  readonly hasBody: boolean;
}

const goIpfs09: Level = {
  traits: {
    name: "0.9",
    program: "go-ipfs",
    title: "go-ipfs",
    version: "0.9.0",
    repo: "11",
    sharding: "by config",
    importDefaults: false,
    filesResolveNames: false,
    joinsLeaf: false,
    limitsUnflushed: false,
    exactNow: false,
    maxChunk: 1024 * 1024,
    maxBlock: 1024 * 1024,
    importing: "0.9",
    names: undefined,
    maxInline: Number.POSITIVE_INFINITY,
    configRules: "0.9",
    publishing: "0.9",
    keys: "0.9",
    storedBlocks: "as stored",
  },
  httpTraits: {
    gatedAgents: ["/go-ipfs/"],
    moved: { status: 301, words: "Moved Permanently" },
    preflight: { status: 200, plainly: false },
    semicolons: true,
    uris: false,
    commandLineOnly: [],
    bytes: {},
  },
  removed: {},
  wordings: {},
  clashes: {
    "block/put": ({ options }) => options["allow-big-block"] === true && options.format === undefined,
    "dag/get": ({ options }) => options["output-codec"] !== undefined,
    "dag/stat": ({ given }) => given.length > 1,
    "pubsub/pub": ({ given: [topic = ""], queried, hasBody }) => hasBody && queried === 1 && isEncodedTopic(topic),
    "pubsub/sub": ({ given: [topic = ""] }) => isEncodedTopic(topic),
    "pubsub/peers": ({ given: [topic = ""] }) => isEncodedTopic(topic),
  },
};

const removedObject = "removed, use 'ipfs dag' or 'ipfs files' instead";
const removedDht = "removed, use 'ipfs routing' instead";

const kubo043: Level = {
  traits: {
    name: "0.43",
    program: "kubo",
    title: "Kubo",
    version: "0.43.0",
    repo: "18",
    sharding: "by size",
    importDefaults: true,
    filesResolveNames: true,
    joinsLeaf: true,
    limitsUnflushed: true,
    exactNow: true,
    maxChunk: 2_096_896,
    maxBlock: 2 * 1024 * 1024,
    importing: "0.43",
    names: "multicodec",
    maxInline: 128,
    configRules: "0.43",
    publishing: "0.43",
    keys: "0.43",
    storedBlocks: "by multihash",
  },
  httpTraits: {
    gatedAgents: ["/go-ipfs/", "/kubo/"],
    moved: { status: 307, words: "Temporary Redirect" },
    preflight: { status: 204, plainly: true },
    semicolons: false,
    uris: true,
    commandLineOnly: ["commands/completion"],
    bytes: {
      "block/get": "application/vnd.ipld.raw",
      "dag/export": "application/vnd.ipld.car",
      get: ({ compress }) => (compress === true ? "application/gzip" : "application/x-tar"),
      "name/get": "application/vnd.ipfs.ipns-record",
      "diag/profile": "application/zip",
    },
  },
  removed: {
    ...Object.fromEntries(
      ["data", "get", "links", "new", "put", "stat", "patch/append-data", "patch/set-data"].map((name) => [
        `object/${name}`,
        removedObject,
      ]),
    ),
    ...Object.fromEntries(
      ["findpeer", "findprovs", "get", "provide", "put"].map((name) => [`dht/${name}`, removedDht]),
    ),
    dns: undefined,
    file: undefined,
    "repo/fsck": undefined,
    tar: undefined,
    update: undefined,
    urlstore: undefined,
  },
  wordings: {
    BLOCK_NOT_FOUND: "block was not found locally (offline): ipld: could not find {cid}",
    NODE_NOT_FOUND: "block was not found locally (offline): ipld: could not find {cid}",
    BLOCKSTORE_NOT_FOUND: "ipld: could not find {cid}",
    BLOCKS_CORRUPT: "{counts}",
    ARCHIVE_BROKEN: "import failed{position}: {cause}",
    BLOCK_NOT_IMPORTED: 'import failed at block "{cid}": {cause}',
    BLOCK_OF_OTHER_HASH: "mismatch in content integrity, expected: {cid}, got: {made}",
    CODEC_UNREADABLE: ({ codec }) =>
      `could not choose a decoder: no decoder registered for multicodec code ${codec} (0x${codec?.toString(16)})`,
    DAG_NOT_EXPORTED: "walk failed: {cause} (currently offline, perhaps retry {remedy})",
    KEYS_NOT_WRITTEN: "cannot get key encoder: {cause}",
    DAG_NOT_TRAVERSED: "error traversing DAG: {cause}",
    NO_LINK: "{later}",
    INVALID_CID: "{later}",
    INVALID_PATH: pathFault,
    INVALID_PEER_ID: "failed to parse peer ID: {later}",
    PEER_NOT_QUERIED:
      "'ipfs id' cannot query information on remote peers without a running daemon; if you only want to convert --peerid-base, pass --offline option",
    PROVIDED_CID_INVALID: "invalid CID {text}: {cause}",
    MULTIBASE_UNKNOWN: "unsupported multibase encoding: {name}",
    CID_CODEC_NOT_OF_VERSION_0: "cannot convert to CIDv0 with any codec other than dag-pb",
    CID_FORMAT_INVALID: ({ format }) => `invalid format string: ${quote(String(format))}`,
    CID_VERSION_INVALID: ({ version }) => `invalid cid version: ${quote(String(version))}`,
    NOT_AN_ENTRY: ({ reason, codec }) =>
      `cp: source must be a valid UnixFS (dag-pb or raw codec)${codec === DAG_PB ? `: ${reason}` : ""}`,
    CODEC_UNKNOWN: ({ name }) => `unknown multicodec: ${quote(String(name))}`,
    NOT_RECURSIVE: "path is a directory, use -r to remove directories",
    HASH_SHORT: "digest too small: {hash} digest got {length} bytes, minimum {least}",
    HASH_UNKNOWN: ({ name }) => `unrecognized hash function: ${quote(String(name))}`,
  },
  clashes: {},
};

export const levels: Readonly<Record<LevelName, Level>> = { "0.9": goIpfs09, "0.43": kubo043 };

/** A path that names no namespace may only be a CID, so it also counts as too short. */
function pathFault({ path, fault, later }: Details): string | undefined {
  if (path === undefined || fault === undefined) return undefined;
  if (fault === "root") return `invalid path ${path}: ${later}`;
  return `invalid path ${path}: ${fault === "namespace" ? "unknown namespace" : "path does not have enough components"}`;
}

/**
 * Returns whether a topic is encoded as later clients do it: text in canonical base64url with its
 * multibase prefix. Text without a capital or a digit is more likely a word that begins with u.
 */
function isEncodedTopic(topic: string): boolean {
  const encoded = topic.slice(1);
  if (!/[A-Z0-9]/.test(encoded)) return false;
  const text = Buffer.from(encoded, "base64url").toString("utf8");
  return topic.startsWith("u") && /^[ -~]{3,}$/.test(text) && Buffer.from(text).toString("base64url") === encoded;
}

/** Returns the text of any thrown value as clients of that level expect it. */
export function wordingOf(thrown: unknown, level: Level): string {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  // Without details the failure has a text of its own already.
  if (!NodeError.is(thrown) || thrown.details === undefined) return text;
  const { cause } = thrown;
  const wording = level.wordings[thrown.code];
  if (wording === undefined) return text;
  const details: Details = { ...thrown.details, ...(cause !== undefined && { cause: wordingOf(cause, level) }) };
  if (typeof wording === "function") return wording(details) ?? text;
  const hasDetails = wording.matchAll(/\{(\w+)\}/g).every(([, name = ""]) => name in details);
  return hasDetails ? wording.replace(/\{(\w+)\}/g, (_, name: string) => String(details[name])) : text;
}

/** Returns the error text for a call that clashes with the level; it names the remedy. */
export function clashText(path: string, { traits: { name, program, version } }: Level): string {
  const other = name === "0.9" ? levels["0.43"] : levels["0.9"];
  return (
    `this is a call of ${path} as clients of ${other.traits.program} ${other.traits.version} send it, but this API has the level ` +
    `of ${program} ${version}: use an address with the other level, which the host provides with the option api_level: "${other.traits.name}" or api_listeners`
  );
}

/** A command, group or option that may have come with a later level. */
export interface SinceLevel {
  /** The level that lists it. It is served at all levels. */
  readonly since?: "0.43";
}

/** Returns whether the level lists it. */
export const isListedAt = ({ since }: SinceLevel, { traits: { name } }: Level): boolean =>
  since === undefined || since === name;
