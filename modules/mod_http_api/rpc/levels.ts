/**
 * The two levels at which the API answers: that of go-ipfs 0.9, and that of Kubo 0.43. Both have one table of commands.
 * What came since is declared with `since` and served at both; what clashes stands here, and as a second declaration
 * beside the first (`today` of a file of `commands/`). No command asks at which level it runs: it takes values from
 * `call.level`.
 */
import { type FailureCode, type Names, NodeError, quote } from "modhost/node";

export type LevelName = "0.9" | "0.43";

/** Values that commands hand on to the node, or show. */
export interface LevelTraits {
  readonly name: LevelName;
  /** The program that this level stands for, its version, and the version of its repos. */
  readonly program: "go-ipfs" | "kubo";
  /** Its name as it prints it itself. */
  readonly title: string;
  readonly version: string;
  readonly repo: string;
  /** When a directory becomes a shard: where `Experimental.ShardingEnabled` says so, or by the size of its node. */
  readonly sharding: "by config" | "by size";
  /** Whether imports take from `Import.*` of the configuration what a call does not say. */
  readonly importDefaults: boolean;
  /** Whether a file of the namespace that has one raw leaf is that leaf, once it is written. */
  readonly joinsLeaf: boolean;
  /** Whether changes of the namespace without `flush` are refused when they are many. */
  readonly limitsUnflushed: boolean;
  /** Whether entries of archives that have no time get the present one with the fraction of its second. */
  readonly exactNow: boolean;
  /** Greatest chunk and block that are made, in bytes. */
  readonly maxChunk: number;
  readonly maxBlock: number;
  /** Which names codecs and hash functions have: those of go-ipfs 0.9 where undefined. */
  readonly names: Names;
  /** Greatest block that is put into its CID, in bytes. */
  readonly maxInline: number;
  /** Whose rules hold for keys of the configuration. */
  readonly configRules: LevelName;
  /** Whose rules hold when a name is published. */
  readonly publishing: LevelName;
  /** How lists of stored blocks name them: by the CID under which they were stored, or by their multihash. */
  readonly storedBlocks: "as stored" | "by multihash";
}

/** What is around the answers of commands. */
export interface Frame {
  /** User agents with one of these words are clients of one version, and let in if it is this one. */
  readonly gatedAgents: readonly string[];
  /** Status of a redirect, and its words. */
  readonly moved: { readonly status: 301 | 307; readonly words: string };
  readonly preflight: {
    readonly status: 200 | 204;
    /** One header Vary, and the allowed headers as they were asked for; otherwise three, and in canonical letters. */
    readonly plainly: boolean;
  };
  /** Whether `;` separates pairs of a query; otherwise a pair with one is dropped. */
  readonly semicolons: boolean;
  /** Whether content paths among the arguments may be written as URIs, such as `ipfs://CID/a`. */
  readonly uris: boolean;
  /** Content types of bytes, by command; all others are text/plain. */
  readonly bytes: Readonly<Record<string, string | ((options: Readonly<Record<string, unknown>>) => string)>>;
}

const DAG_PB = 0x70;

type Details = Readonly<Record<string, string | number>>;

export interface Level {
  readonly traits: LevelTraits;
  readonly frame: Frame;
  /** Commands, with all below them, that are no more: the failure that they answer, or undefined for 404. */
  readonly gone: Readonly<Record<string, string | undefined>>;
  /**
   * Texts of failures that differ from those of the node, by code. `{name}` stands for a detail of that name, `{cause}` for the
   * text of its cause at this level. A failure that lacks the detail keeps the text of the node.
   */
  readonly wordings: Readonly<Partial<Record<FailureCode, string | ((details: Details) => string | undefined)>>>;
  /**
   * Calls that only a client of the other level makes, by command, where it would misread the answer: whether a call is
   * one, by the values of its arguments and the options that were given or have defaults.
   */
  readonly clashes: Readonly<Record<string, (call: ClashingCall) => boolean>>;
}

/** What `clashes` looks at. */
export interface ClashingCall {
  readonly given: readonly string[];
  /** How many of these do not come from the body. */
  readonly queried: number;
  readonly options: Readonly<Record<string, unknown>>;
  /** Whether the call has a multipart body. */
  readonly hasBody: boolean;
}

const zeroNine: Level = {
  traits: {
    name: "0.9",
    program: "go-ipfs",
    title: "go-ipfs",
    version: "0.9.0",
    repo: "11",
    sharding: "by config",
    importDefaults: false,
    joinsLeaf: false,
    limitsUnflushed: false,
    exactNow: false,
    maxChunk: 1024 * 1024,
    maxBlock: 1024 * 1024,
    names: undefined,
    maxInline: Number.POSITIVE_INFINITY,
    configRules: "0.9",
    publishing: "0.9",
    storedBlocks: "as stored",
  },
  frame: {
    gatedAgents: ["/go-ipfs/"],
    moved: { status: 301, words: "Moved Permanently" },
    preflight: { status: 200, plainly: false },
    semicolons: true,
    uris: false,
    bytes: {},
  },
  gone: {},
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

const zeroFortyThree: Level = {
  traits: {
    name: "0.43",
    program: "kubo",
    title: "Kubo",
    version: "0.43.0",
    repo: "18",
    sharding: "by size",
    importDefaults: true,
    joinsLeaf: true,
    limitsUnflushed: true,
    exactNow: true,
    maxChunk: 2_096_896,
    maxBlock: 2 * 1024 * 1024,
    names: "multicodec",
    maxInline: 128,
    configRules: "0.43",
    publishing: "0.43",
    storedBlocks: "by multihash",
  },
  frame: {
    gatedAgents: ["/go-ipfs/", "/kubo/"],
    moved: { status: 307, words: "Temporary Redirect" },
    preflight: { status: 204, plainly: true },
    semicolons: false,
    uris: true,
    bytes: {
      "block/get": "application/vnd.ipld.raw",
      "dag/export": "application/vnd.ipld.car",
      get: ({ compress }) => (compress === true ? "application/gzip" : "application/x-tar"),
      "name/get": "application/vnd.ipfs.ipns-record",
      "diag/profile": "application/zip",
    },
  },
  gone: {
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
    DAG_NOT_EXPORTED: "walk failed: {cause} (currently offline, perhaps retry {remedy})",
    KEYS_NOT_WRITTEN: "cannot get key encoder: {cause}",
    DAG_NOT_TRAVERSED: "error traversing DAG: {cause}",
    NO_LINK: ({ key }) => (key === undefined ? undefined : `key not found: ${key}`),
    INVALID_CID: "{later}",
    INVALID_PATH: pathFault,
    INVALID_PEER_ID: "failed to parse peer ID: {later}",
    PROVIDED_CID_INVALID: "invalid CID {text}: {cause}",
    MULTIBASE_UNKNOWN: "unsupported multibase encoding: {name}",
    CID_CODEC_NOT_OF_VERSION_0: "cannot convert to CIDv0 with any codec other than dag-pb",
    CID_FORMAT_INVALID: ({ format }) => `invalid format string: ${quote(String(format))}`,
    CID_VERSION_INVALID: ({ version }) => `invalid cid version: ${quote(String(version))}`,
    NOT_AN_ENTRY: ({ reason, codec }) =>
      `cp: source must be a valid UnixFS (dag-pb or raw codec)${codec === DAG_PB ? `: ${reason}` : ""}`,
    CODEC_UNKNOWN: ({ name }) => `unknown multicodec: ${quote(String(name))}`,
    HASH_SHORT: "digest too small: {hash} digest got {length} bytes, minimum {least}",
    HASH_UNKNOWN: ({ name }) => `unrecognized hash function: ${quote(String(name))}`,
  },
  clashes: {},
};

export const levels: Readonly<Record<LevelName, Level>> = { "0.9": zeroNine, "0.43": zeroFortyThree };

/** A path is short of components also where it names no namespace: then it may only be a CID. */
function pathFault({ path, fault, later }: Details): string | undefined {
  if (path === undefined || fault === undefined) return undefined;
  if (fault === "root") return `invalid path ${path}: ${later}`;
  return `invalid path ${path}: ${fault === "namespace" ? "unknown namespace" : "path does not have enough components"}`;
}

/**
 * A topic as clients of today write it: text in base64url with its multibase prefix, in its one form. What has neither
 * a capital nor a digit is rather a word that begins with u.
 */
function isEncodedTopic(topic: string): boolean {
  const encoded = topic.slice(1);
  if (!/[A-Z0-9]/.test(encoded)) return false;
  const text = Buffer.from(encoded, "base64url").toString("utf8");
  return topic.startsWith("u") && /^[ -~]{3,}$/.test(text) && Buffer.from(text).toString("base64url") === encoded;
}

/** The text of anything thrown, as clients of that level know it. */
export function wordingOf(thrown: unknown, level: Level): string {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  if (!NodeError.is(thrown) || thrown.code === undefined) return text;
  const { cause } = thrown;
  const wording = level.wordings[thrown.code];
  if (wording === undefined) return text;
  const details: Details = { ...thrown.details, ...(cause !== undefined && { cause: wordingOf(cause, level) }) };
  if (typeof wording === "function") return wording(details) ?? text;
  const isTold = wording.matchAll(/\{(\w+)\}/g).every(([, name = ""]) => name in details);
  return isTold ? wording.replace(/\{(\w+)\}/g, (_, name: string) => String(details[name])) : text;
}

/** The text for a call that clashes with the level, which names the remedy. */
export function clashText(path: string, { traits: { name, program, version } }: Level): string {
  const other = name === "0.9" ? levels["0.43"] : levels["0.9"];
  return (
    `this is a call of ${path} as clients of ${other.traits.program} ${other.traits.version} make it, and this API answers at the level ` +
    `of ${program} ${version}: ask at an address of the other level, which the host has with the option api_level: "${other.traits.name}" or api_listeners`
  );
}

/** Something that came with a level. */
export interface Dated {
  /** The level at which it is listed. It is served at all of them. */
  readonly since?: "0.43";
}

/** Whether a level has it among its own. */
export const isListedAt = ({ since }: Dated, { traits: { name } }: Level): boolean =>
  since === undefined || since === name;
