/**
 * Finds the user at the other end of a loopback connection. Linux lists the user and the inode of
 * each socket, and the sockets that a process has open. A module may fetch an address that a
 * stranger chose, so a connection from this server itself never counts as one of its user.
 */
import { readdir, readFile, readlink } from "node:fs/promises";
import { isIPv4 } from "node:net";
import type { Connection } from "../../core/types.ts";

/**
 * The state of a connection that both sides have open. The system does not report the user for
 * other states.
 */
const ESTABLISHED = "01";

const TABLES = ["/proc/net/tcp", "/proc/net/tcp6"];

/**
 * Matches the fields of a line after the state, up to the inode: queues, timer, retransmissions,
 * user, timeout.
 */
const fieldsOfSocket = /^\S+ \S+ +\S+ +(\d+) +\d+ (\d+) /;

/** Number of links read at a time. */
const BATCH = 64;

type Socket = Connection["socket"];

export interface Peer {
  /** Number of the user (uid) who runs the peer. */
  readonly user: number;
  /** Whether a process of this server has the other end open. */
  readonly isServer: boolean;
}

export interface PeersDeps {
  /** The processes of this server. */
  readonly processes: () => readonly number[];
  readonly readTable?: (table: string) => Promise<string>;
  /** Inodes of the sockets that a process has open. */
  readonly socketsOf?: (process: number) => Promise<readonly string[]>;
}

interface Reading {
  readonly own: ReadonlySet<string>;
  readonly tables: readonly string[];
}

/**
 * Looks up peers. The tables list every connection of the machine, so concurrent lookups share one
 * read of them.
 */
export class Peers {
  /** The peer of each connection, which never changes. */
  readonly #known = new WeakMap<Socket, Peer>();
  readonly #deps: Required<PeersDeps>;
  #reading: Promise<unknown> = Promise.resolve();
  #next: Promise<Reading> | undefined;

  constructor({ processes, readTable = tableText, socketsOf = openSockets }: PeersDeps) {
    this.#deps = { processes, readTable, socketsOf };
  }

  /** Resolves to undefined where the system does not list the peer. */
  async behind(socket: Socket): Promise<Peer | undefined> {
    const { remoteAddress, remotePort = 0, localAddress, localPort = 0 } = socket;
    if (remoteAddress === undefined || localAddress === undefined) return undefined;
    const known = this.#known.get(socket);
    if (known !== undefined) return known;
    const { own, tables } = await this.#read();
    const found = lineOf(tables, ends(remoteAddress, remotePort), ends(localAddress, localPort));
    if (found === undefined) return undefined;
    const peer = { user: found.user, isServer: own.has(found.inode) };
    this.#known.set(socket, peer);
    return peer;
  }

  /**
   * Returns a read that begins after this call. A read in progress may show a time before the
   * connection existed.
   */
  #read(): Promise<Reading> {
    this.#next ??= (async () => {
      await this.#reading;
      this.#next = undefined;
      const reading = this.#readAll();
      this.#reading = reading.catch(() => undefined);
      return reading;
    })();
    return this.#next;
  }

  /**
   * Reads the server's own sockets before the tables. A connection that is established in the
   * tables was then already open, so one that the server closes in between is never attributed to
   * somebody else.
   */
  async #readAll(): Promise<Reading> {
    const { processes, readTable, socketsOf } = this.#deps;
    const own = new Set((await Promise.all(processes().map(socketsOf))).flat());
    return { own, tables: await Promise.all(TABLES.map(readTable)) };
  }
}

const tableText = (table: string) => readFile(table, "latin1").catch(() => "");

/**
 * Returns nothing for a process that has ended. @throws for a process whose files this user may not
 * see
 */
async function openSockets(process: number): Promise<string[]> {
  const folder = `/proc/${process}/fd`;
  const files = await readdir(folder).catch(unlessGone);
  const found: string[] = [];
  for (let at = 0; at < files.length; at += BATCH) {
    const batch = files.slice(at, at + BATCH).map((file) => readlink(`${folder}/${file}`).catch(() => ""));
    for (const target of await Promise.all(batch)) {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(target) ?? [];
      if (inode !== undefined) found.push(inode);
    }
  }
  return found;
}

function unlessGone(error: NodeJS.ErrnoException): string[] {
  if (error.code === "ENOENT" || error.code === "ESRCH") return [];
  throw error;
}

function lineOf(tables: readonly string[], theirs: readonly string[], ours: readonly string[]) {
  for (const table of tables) {
    for (const [form, their] of theirs.entries()) {
      const connection = ` ${their} ${ours[form]} ${ESTABLISHED} `;
      const at = table.indexOf(connection);
      if (at < 0) continue;
      const from = at + connection.length;
      const [, user, inode] = fieldsOfSocket.exec(table.slice(from, from + 200)) ?? [];
      if (user !== undefined && inode !== undefined) return { user: Number(user), inode };
    }
  }
  return undefined;
}

/**
 * Returns an address and port in the form of the tables. An IPv4 address is also returned as its
 * IPv4-mapped IPv6 address.
 */
function ends(address: string, port: number): string[] {
  const tail = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "");
  if (!isIPv4(plain)) return [`${words(groupsOf(plain))}${tail}`];
  const bytes = plain.split(".").map(Number);
  const own = hex(bytes.toReversed());
  return [`${own}${tail}`, `0000000000000000FFFF0000${own}${tail}`];
}

/**
 * Formats each group of four bytes as a number in the byte order of this machine, which is
 * little-endian.
 */
function words(bytes: readonly number[]): string {
  return [0, 4, 8, 12].map((at) => hex(bytes.slice(at, at + 4).toReversed())).join("");
}

const hex = (bytes: readonly number[]) => Buffer.from(bytes).toString("hex").toUpperCase();

/** Returns the bytes of an IPv6 address. */
function groupsOf(address: string): number[] {
  const [before = "", after] = address.split("%", 1)[0]?.split("::", 2) ?? [];
  const groups = (text: string) => (text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16)));
  const head = groups(before);
  const tail = groups(after ?? "");
  const middle = new Array<number>(Math.max(0, 8 - head.length - tail.length)).fill(0);
  return [...head, ...middle, ...tail].flatMap((group) => [group >> 8, group & 0xff]);
}
