/** What hosts of one store are asked for at the same time, and what the history must then hold. */
import type { Query, RpcServer } from "#test/support/rpc_server.ts";
import type { Random } from "../fuzz/random.ts";
import type { History, Value } from "./history.ts";
import type { Pace } from "./pace.ts";

/** A host that may be gone: its calls then reject. */
export interface Host {
  readonly name: string;
  /** Under which it publishes. */
  readonly id: string;
  readonly server: RpcServer;
}

export interface Answer {
  /** Of a success. */
  readonly text?: string;
  /** It says that what was asked for is not there. */
  readonly absent: boolean;
}

interface Sent {
  readonly body?: Buffer;
  /** How it says that what was asked for is not there. */
  readonly absent?: RegExp;
}

export interface WorksOptions {
  /** Those that run. */
  readonly hosts: () => readonly Host[];
  readonly collecting: boolean;
  readonly pace: Pace;
}

/** A change, see `History.change`. */
interface Wanted {
  readonly place: string;
  readonly value: Value;
  readonly way?: string;
  readonly source?: string;
}

type Work = (host: Host) => Promise<unknown>;

/** Paths and pins that all hosts work on: few, so that they meet. */
const SHARED_PATHS = 5;
const MAX_PINS = 30;
const MAX_COPIES = 40;
export const FOLDERS = ["/same", "/own", "/copies"] as const;
const LARGEST = 700 * 1024;
const EMPTY = "an empty file";
const ABSENT_BLOCK = /not found|could not find/;

export class Works {
  /** How often each command was answered with success. */
  readonly counts: Record<string, number> = {};
  /** What was added, by CID. */
  readonly added = new Map<string, string>();
  /** What was sent to be added, and never answered. */
  readonly unanswered = new Set<string>();
  /** An engine is away, or faulty: a call may be refused with 503. */
  disturbed = false;
  /** Calls refused with 503. */
  refused = 0;
  /**
   * Of those, while all engines were there: the database took longer than hosts wait, as this
   * process saw.
   */
  slowed = 0;
  readonly #pace: Pace;
  readonly #underWay = new Map<Host, Set<{ readonly command: string }>>();
  readonly #history: History;
  readonly #random: Random;
  readonly #every: () => readonly Host[];
  readonly #works: readonly (readonly [weight: number, work: Work])[];
  #tokens = 0;
  /** Made, and removed again. */
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

  /** Before all else. */
  async begin(host: Host): Promise<void> {
    for (const arg of FOLDERS) await this.ask(host, "files/mkdir", { arg });
  }

  /** One piece of work. Rejects when the host is gone. */
  async any(host: Host): Promise<void> {
    const total = this.#works.reduce((sum, [weight]) => sum + weight, 0);
    let left = this.#random.below(total);
    for (const [weight, work] of this.#works) {
      left -= weight;
      if (left < 0) return void (await work(host));
    }
  }

  /** What is not told by `absent` must succeed, but for what an engine that is away explains. */
  async ask(host: Host, command: string, query: Query = {}, { body, absent }: Sent = {}): Promise<Answer> {
    const { name, server } = host;
    const call = { command };
    const begin = performance.now();
    const calls = this.#callsOf(host).add(call);
    const answer = await server
      .call(command, query, body && { data: body })
      .then(async (given) => ({ ok: given.ok, status: given.status, text: await given.text() }))
      .finally(() => calls.delete(call));
    const { text } = answer;
    if (answer.ok) {
      this.counts[command] = (this.counts[command] ?? 0) + 1;
      return { text, absent: false };
    }
    if (absent?.test(text) === true) return { absent: true };
    const isSlow = !this.disturbed && this.#pace.wasSlowSince(begin);
    if (answer.status === 503 && (this.disturbed || isSlow)) {
      this.refused += 1;
      if (isSlow) this.slowed += 1;
    } else this.#history.fault(`${name} answered ${command} ${JSON.stringify(query)} with ${answer.status}: ${text}`);
    return { absent: false };
  }

  /** Commands that a host has not answered yet. */
  underWay(host: Host): readonly string[] {
    return [...this.#callsOf(host)].map(({ command }) => command);
  }

  /** Collects garbage, and merges segments. */
  async collect(host: Host): Promise<void> {
    await this.ask(host, "repo/gc", { quiet: "true" });
  }

  /** What is where a path leads; nothing is told when the host refuses. */
  async readPath(host: Host, path: string): Promise<void> {
    await this.#look(
      host,
      path,
      () => this.ask(host, "files/read", { arg: path }, { absent: /does not exist/ }),
      tokenOf,
    );
  }

  /** The name of one host as it is resolved by another. */
  async readName(host: Host, of: Host): Promise<void> {
    const query = { arg: of.id, nocache: "true" };
    const asked = () => this.ask(host, "name/resolve", query, { absent: /could not resolve|not found/ });
    await this.#look(host, `name ${of.name}`, asked, (text) => (JSON.parse(text) as { Path: string }).Path);
  }

  async #look(
    host: Host,
    place: string,
    asked: () => Promise<Answer>,
    valueIn: (text: string) => string,
  ): Promise<void> {
    const read = this.#history.reading(host.name);
    const { text, absent } = await asked();
    if (text !== undefined) read(place, valueIn(text));
    else if (absent) read(place, undefined);
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

  /** Added on one, it is read on all at once. */
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

  /** It is there as long as it is pinned. */
  async cat(host: Host, cid: string): Promise<void> {
    const read = this.#history.reading(host.name);
    const { text, absent } = await this.ask(host, "cat", { arg: cid }, { absent: ABSENT_BLOCK });
    if (absent) read(`pin ${cid}`, undefined);
    if (text === undefined || tokenOf(text) === this.added.get(cid)) return;
    this.#history.fault(`${host.name} gave other bytes for ${cid}: ${tokenOf(text)}`);
  }

  async #readPinned(host: Host): Promise<void> {
    const cid = this.#anyPinned();
    if (cid !== undefined) await this.cat(host, cid);
  }

  /** One that may still be. */
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
    const asked = () => this.ask(host, "pin/add", { arg: cid }, { absent: ABSENT_BLOCK });
    await this.#change(host, { place: `pin ${cid}`, value: "pinned" }, asked);
  }

  async #unpin(host: Host): Promise<void> {
    const cid = this.#anyPinned();
    if (cid === undefined) return;
    const asked = () => this.ask(host, "pin/rm", { arg: cid }, { absent: /not pinned/ });
    await this.#change(host, { place: `pin ${cid}`, value: undefined }, asked);
  }

  async #write(host: Host, path: string): Promise<void> {
    const token = this.#content();
    const query = { arg: path, create: "true", truncate: "true", parents: "true" };
    const absent = /does not exist/;
    // It fails when it is removed meanwhile, as on one host.
    const asked = () => this.ask(host, "files/write", query, { body: bodyOf(token), absent });
    // A new file is made before its bytes are taken.
    await this.#change(host, { place: path, value: token, way: EMPTY }, asked);
  }

  async #remove(host: Host, path: string): Promise<void> {
    const asked = () => this.ask(host, "files/rm", { arg: path }, { absent: /does not exist/ });
    await this.#change(host, { place: path, value: undefined }, asked);
  }

  /** A file keeps content whose pin is removed afterwards. */
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
    const asked = () => this.ask(host, "files/cp", query, { absent: ABSENT_BLOCK });
    await this.#change(host, { place: path, value: this.added.get(cid), source: `pin ${cid}` }, asked);
  }

  async #readFile(host: Host): Promise<void> {
    const paths = this.#history.places("/");
    if (paths.length > 0) await this.readPath(host, this.#random.pick(paths));
  }

  async #publish(host: Host): Promise<void> {
    const cid = this.#anyPinned();
    if (cid === undefined) return;
    const query = { arg: `/ipfs/${cid}`, "allow-offline": "true", resolve: "false" };
    const wanted = { place: `name ${host.name}`, value: `/ipfs/${cid}` };
    await this.#change(host, wanted, () => this.ask(host, "name/publish", query));
  }

  /** `source`: the place that holds nothing when the host says so. */
  async #change(
    host: Host,
    { place, value, way, source = place }: Wanted,
    asked: () => Promise<Answer>,
  ): Promise<void> {
    const read = this.#history.reading(host.name);
    let isAbsent = false;
    const run = async () => {
      const { text, absent } = await asked();
      isAbsent = absent;
      if (text !== undefined) return "done";
      return absent ? "none" : "unknown";
    };
    await this.#history.change(host.name, place, value, run, way);
    if (isAbsent) read(source, undefined);
  }
}

/** Content that its first word tells whole. */
export function bodyOf(token: string): Buffer {
  const size = Number(token.split("-")[1]);
  return Buffer.alloc(size + token.length + 1, `${token} `);
}

/** The reverse. Content that is none is given with what is wrong. */
export function tokenOf(text: string): string {
  if (text === "") return EMPTY;
  const [token = "", size] = /^t\d+-(\d+)(?= )/.exec(text) ?? [];
  if (size !== undefined && bodyOf(token).toString() === text) return token;
  return `${text.length} bytes that are not whole: ${text.slice(0, 60)}`;
}

/** What a call rejects with when its host is gone. */
export const isGone = (error: unknown): boolean =>
  error instanceof TypeError && ["fetch failed", "terminated"].includes(error.message);

/** Another host may be gone; the own one ends the work. */
const goneUnless = (own: boolean) => (error: unknown) => {
  if (own || !isGone(error)) throw error;
};
