/** Checks of the data folder of a server. */
import { accessSync, constants, existsSync, lstatSync, readdirSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { size_text } from "../../util/text.ts";
import { type Check, type Finding, type Installation, problem, warning } from "./check.ts";

const MIN_FREE_BYTES = 100_000_000;
const LOW_FREE_BYTES = 1_000_000_000;
/** Minimum share of free inodes of a file system. */
const MIN_FREE_FILES = 0.01;
/** How far the clock may be behind the latest file. */
const MAX_FUTURE_MS = 60_000;
/** Maximum length of a socket path in the system. */
const MAX_SOCKET_BYTES = 107;

/** File system types of statfs(2). */
const fileSystems: ReadonlyMap<number, readonly [name: string, why: string]> = new Map([
  [0x01021994, ["tmpfs", "its files are lost when the machine restarts"]],
  [0x858458f6, ["a RAM disk", "its files are lost when the machine restarts"]],
  [0x6969, ["NFS", "its locks and shared memory are not reliable, which can damage a database"]],
  [0xff534d42, ["CIFS", "its locks and shared memory are not reliable, which can damage a database"]],
  [0xfe534d42, ["SMB", "its locks and shared memory are not reliable, which can damage a database"]],
  [0x65735546, ["FUSE", "whether its locks and shared memory are reliable depends on the program behind it"]],
  [0x01021997, ["9P", "its locks and shared memory are not reliable, which can damage a database"]],
]);

/** Files of the data folder that only the server may read. */
const secrets = ["tokens.json", "audit.jsonl", "admin.sock"];

export const dataChecks: readonly Check[] = [
  {
    name: "data folder",
    help: "The data folder is writable, and belongs to this user alone",
    run({ data, system }) {
      const found = statSync(data, { throwIfNoEntry: false });
      if (found === undefined) {
        const above = existing(dirname(data));
        if (isWritable(above)) return [];
        return [
          problem(
            `${data} cannot be created: ${above} is not writable`,
            `mkdir ${data}, for this user, or set data_path`,
          ),
        ];
      }
      if (!found.isDirectory()) return [problem(`${data} is not a folder`, "move the file away, or set data_path")];
      if (!isWritable(data))
        return [
          problem(`${data} is not writable`, `chown it to the user that runs the server, or run as uid ${found.uid}`),
        ];
      return [...ownerFindings(data, found, system.uid), ...secretFindings(data)];
    },
  },
  {
    name: "space",
    help: "Its file system has free space and free inodes",
    run({ data, system }) {
      const space = system.space(existing(data));
      if (space === undefined) return [];
      const { free, files, freeFiles } = space;
      const remedy = "free some space, or set data_path to another disk";
      const text = `The file system of ${data} has only ${size_text(free)} of free space`;
      return [
        ...(free < MIN_FREE_BYTES ? [problem(text, remedy)] : free < LOW_FREE_BYTES ? [warning(text, remedy)] : []),
        ...(files > 0 && freeFiles / files < MIN_FREE_FILES
          ? [
              warning(
                `The file system of ${data} has room for only ${freeFiles} more files`,
                "remove files, or re-create the file system with more inodes",
              ),
            ]
          : []),
      ];
    },
  },
  {
    name: "file system",
    help: "The data folder is on a reliable file system",
    run({ data, system }) {
      const type = system.space(existing(data))?.type;
      const known = type === undefined ? undefined : fileSystems.get(type);
      if (known === undefined) return [];
      const [name, why] = known;
      return [warning(`${data} is on ${name}: ${why}`, "set data_path to a folder on a disk of this machine")];
    },
  },
  {
    name: "clock",
    help: "The clock is not behind the latest file of the data folder",
    run({ data, system }) {
      const latest = [data, ...filesIn(data)]
        .map((path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0)
        .reduce((one, other) => Math.max(one, other));
      if (latest <= system.now() + MAX_FUTURE_MS) return [];
      const when = new Date(latest).toISOString();
      return [
        warning(
          `The clock shows ${new Date(system.now()).toISOString()}, but ${data} was written to at ${when}`,
          "set the clock (timedatectl): certificates and tokens expire by it",
        ),
      ];
    },
  },
  {
    name: "admin socket",
    help: "The admin socket belongs to a running server, or does not exist",
    run: socketFindings,
  },
];

/** Returns the files and folders directly in a folder; empty if it cannot be read. */
function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder).map((name) => join(folder, name));
  } catch {
    return [];
  }
}

function socketFindings({ socket, running, unreached }: Installation): Finding[] {
  if (Buffer.byteLength(socket) > MAX_SOCKET_BYTES)
    return [
      problem(`The path ${socket} is longer than ${MAX_SOCKET_BYTES} bytes`, "set admin_socket to a shorter one"),
    ];
  const found = lstatSync(socket, { throwIfNoEntry: false });
  if (running !== undefined || found === undefined) return [];
  if (!found.isSocket()) return [problem(`${socket} is not a socket`, "move the file away: commands need this path")];
  return [
    warning(
      unreached ?? `No server listens on ${socket}`,
      "it was left behind by a server that was killed: the next start replaces it",
    ),
  ];
}

function ownerFindings(data: string, { uid, mode }: Stats, own: number | undefined): Finding[] {
  return [
    ...(own !== undefined && own !== 0 && uid !== own
      ? [
          warning(
            `${data} belongs to uid ${uid}, and this user is ${own}`,
            `chown -R ${own} ${data}, or run as its owner`,
          ),
        ]
      : []),
    ...((mode & 0o077) === 0
      ? []
      : [warning(`Other users can read ${data}, which contains keys and tokens`, `chmod 700 ${data}`)]),
  ];
}

function secretFindings(data: string): Finding[] {
  return secrets.flatMap((name) => {
    const path = join(data, name);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined || (found.mode & 0o077) === 0) return [];
    return [warning(`Other users may use ${path}`, `chmod 600 ${path}`)];
  });
}

/** Returns the path itself, or the nearest folder above it that exists. */
export function existing(path: string): string {
  return existsSync(path) || path === dirname(path) ? path : existing(dirname(path));
}

/** Returns true if this process may write to a path. */
export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
