/** JSON Schemas of the responses of the node's operations. `types.ts` explains each field. */
type Schema = Readonly<Record<string, unknown>>;

const text = { type: "string" };
const number = { type: "number" };
const integer = { type: "integer" };
const flag = { type: "boolean" };
const time = { type: "string", format: "date-time" };
const one = (...values: readonly string[]): Schema => ({ enum: values });
const list = (items: Schema): Schema => ({ type: "array", items });
const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

/** Fields whose names end in `?` are optional. */
function object(fields: Readonly<Record<string, Schema>>): Schema {
  const named = Object.entries(fields).map(([name, schema]) => [name.replace(/\?$/, ""), schema] as const);
  const required = Object.keys(fields).filter((name) => !name.endsWith("?"));
  return { type: "object", properties: Object.fromEntries(named), required };
}

const counts = object({ queued: integer, pinning: integer, pinned: integer, failed: integer });
const column = list({ type: ["number", "null"] });
const traffic = { total_in: integer, total_out: integer, rate_in: integer, rate_out: integer };

export const shapes: Readonly<Record<string, Schema>> = {
  NodeStatus: object({
    id: text,
    public_key: text,
    agent: text,
    protocol: text,
    version: text,
    online: flag,
    offline: flag,
    addresses: list(text),
    listening: list(text),
    protocols: list(text),
    repo: object({ size: integer, "limit?": integer, blocks: integer, version: text }),
    path: text,
  }),
  NodeStore: object({
    is_shared: flag,
    "engines?": list(object({ kind: one("objects", "database"), place: text, "problem?": text })),
    "cache?": object({ size: integer, limit: integer, hits: integer, misses: integer }),
    "waiting?": object({ size: integer, changes: integer }),
    "requests?": list(object({ kind: text, count: integer, repeated: integer, failed: integer })),
    "commits?": object({ count: integer, calls: integer, sessions_lost: integer }),
    "last_gc?": object({ time, "removed?": integer }),
  }),
  NodeFiguresNow: object({
    time,
    online: flag,
    peers: integer,
    ...traffic,
    repo_size: integer,
    "repo_limit?": integer,
    blocks: integer,
    wants: integer,
  }),
  NodeHistory: object({
    interval: number,
    time: list(integer),
    series: object({ peers: column, rate_in: column, rate_out: column, repo_size: column, blocks: column }),
  }),
  Traffic: object(traffic),
  Bandwidth: object({ total: ref("Traffic"), protocols: list(object({ protocol: text, ...traffic })) }),
  PeerConnection: object({
    id: text,
    address: text,
    transport: text,
    agent: text,
    "latency?": number,
    direction: one("inbound", "outbound"),
    streams: list(text),
    opened: time,
  }),
  PeerList: object({ online: flag, peers: list(ref("PeerConnection")) }),
  PeerAnswer: object({ message: text }),
  Job: object({
    id: text,
    kind: one("gc", "verify", "pin"),
    what: text,
    by: text,
    state: one("running", "done", "failed", "cancelled"),
    began: time,
    "ended?": time,
    progress: object({ done: integer, "total?": integer, unit: one("blocks") }),
    "error?": text,
    "result?": { type: "object" },
  }),
  Pin: object({ cid: text, type: one("recursive", "direct"), name: text }),
  PinPage: object({ total: integer, offset: integer, pins: list(ref("Pin")) }),
  PinState: object({ cid: text, type: one("recursive", "direct", "indirect", "none"), "through?": text, name: text }),
  RemoteServiceState: object({ service: text, endpoint: text, "counts?": counts, "is_valid?": flag }),
  RemotePinState: object({ cid: text, name: text, status: one("queued", "pinning", "pinned", "failed", "") }),
  RemotePinPage: object({ pins: list(ref("RemotePinState")), has_more: flag }),
  NodeKey: object({ name: text, id: text, is_self: flag, "value?": text }),
  NamedValue: object({ name: text, value: text }),
  Ledger: object({ peer: text, debt: number, sent: integer, received: integer, exchanged: integer }),
  BitswapState: object({
    online: flag,
    blocks_received: integer,
    blocks_sent: integer,
    data_received: integer,
    data_sent: integer,
    duplicate_blocks: integer,
    duplicate_data: integer,
    provide_queue: integer,
    wants: integer,
    wantlist: list(text),
    partners: integer,
    ledgers: list(ref("Ledger")),
  }),
  NodeConfigKey: object({
    key: text,
    help: text,
    type: text,
    "value?": text,
    "default?": text,
    applies: one("live", "start", "none"),
    is_secret: flag,
  }),
  NodeConfig: object({
    path: text,
    keys: list(ref("NodeConfigKey")),
    waiting: list(object({ key: text, "reason?": text })),
  }),
  NodeConfigSet: object({ key: text, "value?": text, is_in_force: flag, "reason?": text }),
  FilesEntry: object({
    name: text,
    cid: text,
    type: one("file", "directory", "symlink", "unknown"),
    size: integer,
    is_here: flag,
  }),
  FilesPage: object({ path: text, cid: text, total: integer, offset: integer, entries: list(ref("FilesEntry")) }),
  FilesStat: object({
    path: text,
    cid: text,
    type: one("file", "directory"),
    size: integer,
    total_size: integer,
    links: integer,
    "media_type?": text,
  }),
  FilesChange: object({ path: text, "cid?": text }),
  Uploaded: object({ path: text, cid: text, size: integer }),
  DagNode: object({
    path: text,
    cid: text,
    remainder: text,
    version: { enum: [0, 1] },
    codec: text,
    hash: object({ name: text, code: integer, digest: text }),
    size: integer,
    was_here: flag,
    links: object({ total: integer, offset: integer, items: list(object({ name: text, cid: text, size: integer })) }),
    "unixfs?": object({ type: text, size: integer }),
    data: object({ form: one("json", "text", "hex"), text, is_cut: flag, size: integer }),
  }),
};
