/** Lists the sockets on which this process listens, as Linux reports them. */
import { readdir, readFile, readlink } from "node:fs/promises";

const kinds = ["tcp", "tcp6", "udp", "udp6"] as const;
/** States in `/proc/net`: a TCP socket that listens, a UDP socket that is open. */
const listens = { tcp: "0A", udp: "07" } as const;

/** Resolves to texts such as `tcp 127.0.0.1:4001`, sorted. */
export async function listeningSockets(): Promise<readonly string[]> {
  const own = await ownSockets();
  const found = await Promise.all(
    kinds.map(async (kind) => {
      const protocol = kind.slice(0, 3) as keyof typeof listens;
      const rows = (await readFile(`/proc/self/net/${kind}`, "utf8").catch(() => "")).split("\n").slice(1);
      return rows
        .map((row) => row.trim().split(/\s+/))
        .filter(([, , , state, , , , , , inode]) => state === listens[protocol] && own.has(inode))
        .map(([, local = ""]) => `${protocol} ${addressOf(local)}`);
    }),
  );
  return found.flat().sort();
}

async function ownSockets(): Promise<ReadonlySet<string | undefined>> {
  const handles = await readdir("/proc/self/fd");
  const targets = await Promise.all(handles.map((handle) => readlink(`/proc/self/fd/${handle}`).catch(() => "")));
  return new Set(targets.map((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1]));
}

/** Parses an address of little-endian words of four bytes, and the port. */
function addressOf(text: string): string {
  const [host = "", port = ""] = text.split(":");
  const bytes = Buffer.from(host, "hex");
  bytes.swap32();
  const shown = bytes.length === 4 ? bytes.join(".") : `[${ip6(bytes)}]`;
  return `${shown}:${Number.parseInt(port, 16)}`;
}

function ip6(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16));
  return groups
    .join(":")
    .replace(/^(?:0:){7}/, "::")
    .replace(/^::0$/, "::");
}
