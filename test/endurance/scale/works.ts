/** The calls to hosts of one store at the same time, and their effect on the history. */
import type { Query, RpcServer } from "#test/support/rpc_server.ts";
import type { Random } from "../fuzz/random.ts";
import type { History, HistoryValue } from "./history.ts";
import type { Pace } from "./pace.ts";

/** A host that may have ended: then its calls reject. */
export interface Host {
  readonly name: string;
  /** The IPNS name that the host publishes. */
  readonly id: string;
  readonly server: RpcServer;
}

export interface CallResult {
  /** Text of a successful response. */
  readonly text?: string;
  /** Whether the response reports that the requested item does not exist. */
  readonly absent: boolean;
}

interface Sent {
  readonly body?: Buffer;
  /** Matches the error that the requested item does not exist. */
  readonly absent?: RegExp;
}

export interface WorksOptions {
  /** Returns the running hosts. */
  readonly hosts: () => readonly Host[];
  readonly collecting: boolean;
  readonly pace: Pace;
}

/** A change, see `History.change`. */
interface Wanted {
  readonly item: string;
  readonly value: HistoryValue;
  readonly way?: string;
  readonly source?: string;
}

type Work = (host: Host) => Promise<unknown>;

/** Paths and pins that all hosts use: few, so that changes conflict. */
const SHARED_PATHS = 5;
const MAX_PINS = 30;
const MAX_COPIES = 40;
export const FOLDERS = ["/same", "/own", "/copies"] as const;
const LARGEST = 700 * 1024;
const EMPTY = "an empty file";
const ABSENT_BLOCK = /not found|could not find/;

export class Works {
  /** Number of successful calls of each command. */
  readonly counts: Record<string, number> = {};
  /** Added content by CID. */
  readonly added = new Map<string, string>();
  /** Content of adds without a response. */
  readonly unanswered = new Set<string>();
  /** Whether an engine is unavailable or faulty: then a call may be rejected with 503. */
  disturbed = false;
  /** Number of calls rejected with 503. */
  refused = 0;
  /**
   * Rejected calls while all engines were available: this process saw the database take longer
   * than hosts wait.
   */
  slowed = 0;
  readonly #pace: Pace;
  readonly #underWay = new Map<Host, Set<{ readonly command: string }>>();
  readonly #history: History;
  readonly #random: Random;
  readonly #every: () => readonly Host[];
  readonly #works: readonly (readonly [weight: number, work: Work])[];
  #tokens = 0;
  /** Number of copies that were made and removed again. */
  #copies = 0;
  #removed = 0;

  constructor(history: History, random: Random, { hosts: every, collecting, pace }: WorksOptions) {
    this.#history = history;
    this.#random = random;
    this.#every = every;
    this.#pace = pace;
    this.#works = [
      [4, (host) => this.#add(host)],
      [2, (host) => this.#pin(host)],
      [2, (host) => this.#unpin(host)],
      [4, (host) => this.#write(host, `/same/${random.below(SHARED_PATHS)}`)],
      [3, (host) => this.#write(host, `/own/${host.name}-${random.below(3)}`)],
      [2, (host) => this.#remove(host, `/same/${random.below(SHARED_PATHS)}`)],
      [2, (host) => this.#copy(host)],
      [4, (host) => this.#readFile(host)],
      [3, (host) => this.#readPinned(host)],
      [1, (host) => this.#publish(host)],
      [1, (host) => this.readName(host, random.pick(every()))],
      [collecting ? 1 : 0, (host) => this.collect(host)],
    ];
  }

  /** Prepares the folders. */
  async begin(host: Host): Promise<void> {
    for (const arg of FOLDERS) await this.ask(host, "files/mkdir", { arg });
  }

  /** Does one piece of work. Rejects if the host has ended. */
  async any(host: Host): Promise<void> {
    const total = this.#works.reduce((sum, [weight]) => sum + weight, 0);
    let left = this.#random.below(total);
    for (const [weight, work] of this.#works) {
      left -= weight;
      if (left < 0) return void (await work(host));
    }
  }

  /** A call must succeed, unless `absent` matches or an unavailable engine explains the failure. */
  async ask(host: Host, command: string, query: Query = {}, { body, absent }: Sent = {}): Promise<CallResult> {
    const { name, server } = host;
    const call = { command };
    const begin = performance.now();
    const calls = this.#callsOf(host).add(call);
    const response = await server
      .call(command, query, body && { data: body })
      .then(async (given) => ({ ok: given.ok, status: given.status, text: await given.text() }))
      .finally(() => calls.delete(call));
    const { text } = response;
    if (response.ok) {
      this.counts[command] = (this.counts[command] ?? 0) + 1;
      return { text, absent: false };
    }
    if (absent?.test(text) === true) return { absent: true };
    const isSlow = !this.disturbed && this.#pace.wasSlowSince(begin);
    if (response.status === 503 && (this.disturbed || isSlow)) {
      this.refused += 1;
      if (isSlow) this.slowed += 1;
    } else
      this.#history.fault(`${name} responded to ${command} ${JSON.stringify(query)} with ${response.status}: ${text}`);
    return { absent: false };
  }

  /** Returns commands to which a host has not responded yet. */
  underWay(host: Host): readonly string[] {
    return [...this.#callsOf(host)].map(({ command }) => command);
  }

  /** Collects garbage, which merges segments. */
  async collect(host: Host): Promise<void> {
    await this.ask(host, "repo/gc", { quiet: "true" });
  }

  /** Reads the content of a path. Nothing is recorded if the host rejects the call. */
  async readPath(host: Host, path: string): Promise<void> {
    await this.#look(
      host,
      path,
      () => this.ask(host, "files/read", { arg: path }, { absent: /does not exist/ }),
      tokenOf,
    );
  }

  /** Resolves the name of one host on another. */
  async readName(host: Host, of: Host): Promise<void> {
    const query = { arg: of.id, nocache: "true" };
    const call = () => this.ask(host, "name/resolve", query, { absent: /could not resolve|not found/ });
    await this.#look(host, `name ${of.name}`, call, (text) => (JSON.parse(text) as { Path: string }).Path);
  }

  async #look(
    host: Host,
    item: string,
    call: () => Promise<CallResult>,
    valueIn: (text: string) => string,
  ): Promise<void> {
    const read = this.#history.reading(host.name);
    const { text, absent } = await call();
    if (text !== undefined) read(item, valueIn(text));
    else if (absent) read(item, undefined);
  }

  #callsOf(host: Host): Set<{ readonly command: string }> {
    const known = this.#underWay.get(host) ?? new Set();
    this.#underWay.set(host, known);
    return known;
  }

  #content(): string {
    this.#tokens += 1;
    const size = this.#random.chance(0.1) ? this.#random.below(LARGEST) : this.#random.below(4000);
    return `t${this.#tokens}-${size}`;
  }

  /** Adds content on one host and reads it on all hosts at once. */
  async #add(host: Host): Promise<void> {
    const token = this.#content();
    const body = bodyOf(token);
    this.unanswered.add(token);
    const { text } = await this.ask(host, "add", { progress: "false", "raw-leaves": "true" }, { body });
    if (text === undefined) return;
    this.unanswered.delete(token);
    const { Hash: cid } = JSON.parse(text) as { Hash: string };
    this.added.set(cid, token);
    this.#history.changed(host.name, `pin ${cid}`, "pinned");
    await Promise.all(this.#every().map((other) => this.cat(other, cid).catch(goneUnless(other === host))));
    if (this.#pinned().length > MAX_PINS) await this.#unpin(host);
  }

  /** Reads content, which exists as long as it is pinned. */
  async cat(host: Host, cid: string): Promise<void> {
    const read = this.#history.reading(host.name);
    const { text, absent } = await this.ask(host, "cat", { arg: cid }, { absent: ABSENT_BLOCK });
    if (absent) read(`pin ${cid}`, undefined);
    if (text === undefined || tokenOf(text) === this.added.get(cid)) return;
    this.#history.fault(`${host.name} returned other bytes for ${cid}: ${tokenOf(text)}`);
  }

  async #readPinned(host: Host): Promise<void> {
    const cid = this.#anyPinned();
    if (cid !== undefined) await this.cat(host, cid);
  }

  /** Returns content that may still be pinned. */
  #anyPinned(): string | undefined {
    const pinned = this.#pinned();
    return pinned.length === 0 ? undefined : this.#random.pick(pinned);
  }

  #pinned(): string[] {
    return [...this.added.keys()].filter((cid) => this.#history.mayHold(`pin ${cid}`, "pinned"));
  }

  async #pin(host: Host): Promise<void> {
    const cid = this.#anyPinned();
    if (cid === undefined) return;
    const call = () => this.ask(host, "pin/add", { arg: cid }, { absent: ABSENT_BLOCK });
    await this.#change(host, { item: `pin ${cid}`, value: "pinned" }, call);
  }

  async #unpin(host: Host): Promise<void> {
    const cid = this.#anyPinned();
    if (cid === undefined) return;
    const call = () => this.ask(host, "pin/rm", { arg: cid }, { absent: /not pinned/ });
    await this.#change(host, { item: `pin ${cid}`, value: undefined }, call);
  }

  async #write(host: Host, path: string): Promise<void> {
    const token = this.#content();
    const query = { arg: path, create: "true", truncate: "true", parents: "true" };
    const absent = /does not exist/;
    // The call fails if the content is removed meanwhile, as on a single host.
    const call = () => this.ask(host, "files/write", query, { body: bodyOf(token), absent });
    // The file is created before its bytes are read.
    await this.#change(host, { item: path, value: token, way: EMPTY }, call);
  }

  async #remove(host: Host, path: string): Promise<void> {
    const call = () => this.ask(host, "files/rm", { arg: path }, { absent: /does not exist/ });
    await this.#change(host, { item: path, value: undefined }, call);
  }

  /** A file protects its content after its pin is removed. */
  async #copy(host: Host): Promise<void> {
    if (this.#copies - this.#removed >= MAX_COPIES) {
      this.#removed += 1;
      return await this.#remove(host, `/copies/${this.#removed}`);
    }
    const cid = this.#anyPinned();
    if (cid === undefined) return;
    this.#copies += 1;
    const path = `/copies/${this.#copies}`;
    const query: Query = [
      ["arg", `/ipfs/${cid}`],
      ["arg", path],
    ];
    const call = () => this.ask(host, "files/cp", query, { absent: ABSENT_BLOCK });
    await this.#change(host, { item: path, value: this.added.get(cid), source: `pin ${cid}` }, call);
  }

  async #readFile(host: Host): Promise<void> {
    const paths = this.#history.items("/");
    if (paths.length > 0) await this.readPath(host, this.#random.pick(paths));
  }

  async #publish(host: Host): Promise<void> {
    const cid = this.#anyPinned();
    if (cid === undefined) return;
    const query = { arg: `/ipfs/${cid}`, "allow-offline": "true", resolve: "false" };
    const wanted = { item: `name ${host.name}`, value: `/ipfs/${cid}` };
    await this.#change(host, wanted, () => this.ask(host, "name/publish", query));
  }

  /** `source`: the item that does not exist if the host reports so. */
  async #change(
    host: Host,
    { item, value, way, source = item }: Wanted,
    call: () => Promise<CallResult>,
  ): Promise<void> {
    const read = this.#history.reading(host.name);
    let isAbsent = false;
    const run = async () => {
      const { text, absent } = await call();
      isAbsent = absent;
      if (text !== undefined) return "done";
      return absent ? "none" : "unknown";
    };
    await this.#history.change(host.name, item, value, run, way);
    if (isAbsent) read(source, undefined);
  }
}

/** Makes content that its first word determines completely. */
export function bodyOf(token: string): Buffer {
  const size = Number(token.split("-")[1]);
  return Buffer.alloc(size + token.length + 1, `${token} `);
}

/** The reverse of `bodyOf`. For other content it returns a description of what is wrong. */
export function tokenOf(text: string): string {
  if (text === "") return EMPTY;
  const [token = "", size] = /^t\d+-(\d+)(?= )/.exec(text) ?? [];
  if (size !== undefined && bodyOf(token).toString() === text) return token;
  return `${text.length} incomplete bytes: ${text.slice(0, 60)}`;
}

/** Returns whether a call was rejected because its host has ended. */
export const isGone = (error: unknown): boolean =>
  error instanceof TypeError && ["fetch failed", "terminated"].includes(error.message);

/** Another host may have ended; if it is the own one, the work ends. */
const goneUnless = (own: boolean) => (error: unknown) => {
  if (own || !isGone(error)) throw error;
};
