/** Which user of this machine is at the other end of a loopback connection: Linux tells of each socket whose it is. */
import { readFile } from "node:fs/promises";
import { isIPv4 } from "node:net";
import type { Connection } from "../../core/types.ts";

/** State of a connection that is open on both sides; of others the system no longer tells the user. */
const ESTABLISHED = "01";

type Socket = Connection["socket"];

/** A connection keeps its user. */
const known = new WeakMap<Socket, number>();

/** The user's number; undefined where it cannot be told. */
export async function userBehind({ socket }: Connection): Promise<number | undefined> {
  const found = known.get(socket) ?? (await lookUp(socket));
  if (found !== undefined) known.set(socket, found);
  return found;
}

async function lookUp({ remoteAddress, remotePort, localAddress, localPort }: Socket): Promise<number | undefined> {
  if (remoteAddress === undefined || localAddress === undefined) return undefined;
  const [theirs, ours] = [ends(remoteAddress, remotePort ?? 0), ends(localAddress, localPort ?? 0)];
  for (const file of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    const table = await readFile(file, "latin1").catch(() => "");
    for (const line of table.split("\n").slice(1)) {
      const [, local = "", remote = "", state, , , , uid] = line.trim().split(/\s+/);
      if (state === ESTABLISHED && theirs.includes(local) && ours.includes(remote)) return Number(uid);
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
