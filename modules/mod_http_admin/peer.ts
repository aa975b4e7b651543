/** Which user of this machine is at the other end of a loopback connection: Linux tells of each socket whose it is. */
import { readFile } from "node:fs/promises";
import { isIPv4 } from "node:net";
import type { Connection } from "../../core/types.ts";

/** State of a connection that is open on both sides; of others the system no longer tells the user. */
const ESTABLISHED = "01";

const TABLES = ["/proc/net/tcp", "/proc/net/tcp6"];

/** The fields of a line behind the state, up to the user: queues, timer, retransmissions. */
const fieldsOfUser = /^\S+ \S+ +\S+ +(\d+) /;

type Socket = Connection["socket"];
type Read = (table: string) => Promise<string>;

const readTable: Read = (table) => readFile(table, "latin1").catch(() => "");

/** Looks users up. The tables list every connection of the machine: those who ask meanwhile share the next reading. */
export class Users {
  /** A connection keeps its user. */
  readonly #known = new WeakMap<Socket, number>();
  readonly #read: Read;
  #reading: Promise<unknown> = Promise.resolve();
  #next: Promise<readonly string[]> | undefined;

  constructor(read: Read = readTable) {
    this.#read = read;
  }

  /** The user's number; undefined where it cannot be told. */
  async behind(socket: Socket): Promise<number | undefined> {
    const { remoteAddress, remotePort = 0, localAddress, localPort = 0 } = socket;
    if (remoteAddress === undefined || localAddress === undefined) return undefined;
    const known = this.#known.get(socket);
    if (known !== undefined) return known;
    const user = userOf(await this.#tables(), ends(remoteAddress, remotePort), ends(localAddress, localPort));
    if (user !== undefined) this.#known.set(socket, user);
    return user;
  }

  /** A reading that begins after the call: one that has begun may be of a time before the connection. */
  #tables(): Promise<readonly string[]> {
    this.#next ??= (async () => {
      await this.#reading;
      this.#next = undefined;
      const tables = Promise.all(TABLES.map(this.#read));
      this.#reading = tables;
      return tables;
    })();
    return this.#next;
  }
}

function userOf(tables: readonly string[], theirs: readonly string[], ours: readonly string[]): number | undefined {
  for (const table of tables) {
    for (const [form, their] of theirs.entries()) {
      const connection = ` ${their} ${ours[form]} ${ESTABLISHED} `;
      const at = table.indexOf(connection);
      if (at < 0) continue;
      const from = at + connection.length;
      const [, user] = fieldsOfUser.exec(table.slice(from, from + 200)) ?? [];
      if (user !== undefined) return Number(user);
    }
  }
  return undefined;
}

/** An address and port as the tables have them: an IPv4 address also as the one of IPv6 that stands for it. */
function ends(address: string, port: number): string[] {
  const tail = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "");
  if (!isIPv4(plain)) return [`${words(groupsOf(plain))}${tail}`];
  const bytes = plain.split(".").map(Number);
  const own = hex(bytes.toReversed());
  return [`${own}${tail}`, `0000000000000000FFFF0000${own}${tail}`];
}

/** Each word of four bytes is written as a number of this machine's byte order, which is little-endian. */
function words(bytes: readonly number[]): string {
  return [0, 4, 8, 12].map((at) => hex(bytes.slice(at, at + 4).toReversed())).join("");
}

const hex = (bytes: readonly number[]) => Buffer.from(bytes).toString("hex").toUpperCase();

/** The bytes of an IPv6 address. */
function groupsOf(address: string): number[] {
  const [before = "", after] = address.split("%", 1)[0]?.split("::", 2) ?? [];
  const groups = (text: string) => (text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16)));
  const [head, tail] = [groups(before), groups(after ?? "")];
  const middle = new Array<number>(Math.max(0, 8 - head.length - tail.length)).fill(0);
  return [...head, ...middle, ...tail].flatMap((group) => [group >> 8, group & 0xff]);
}
