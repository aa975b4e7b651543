/**
 * A hostile program for the sandbox. It tries every escape of a table and writes the outcomes to
 * descriptor 3 as JSON: `{ name: "refused CODE" | "got VALUE" }`. The last argument of the command
 * line says what it knows of its host. The numbers of system calls are those of x86-64.
 */
import { spawnSync } from "node:child_process";
import dgram from "node:dgram";
import fs from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { Worker } from "node:worker_threads";

const facts = JSON.parse(process.argv.at(-1));
const { own, data, outside, host, cgroups, isNative, isControl, tries } = facts;
const secret = join(outside, "secret.txt");
const victim = join(own, "victim.txt");

/** Keeps memory alive that a system call gets the address of. */
const alive = [];
const ffi = isNative ? process.getBuiltinModule("node:ffi") : undefined;
const I = "int64";
const signature = (values, result) => ({ arguments: values, return: result, parameters: values, result });
const libc = ffi?.dlopen(null, {
  syscall: signature(Array(7).fill(I), I),
  __errno_location: signature([], "pointer"),
}).functions;

function address(bytes) {
  alive.push(bytes);
  return BigInt(ffi.getRawPointer(bytes));
}

/** Makes a system call. Texts and bytes are passed by address. */
function call(number, ...args) {
  const values = [number, ...args, 0, 0, 0, 0, 0, 0].slice(0, 7).map((value) => {
    if (typeof value === "string") return address(Buffer.from(`${value}\0`));
    return Buffer.isBuffer(value) ? address(value) : BigInt(value);
  });
  const result = libc.syscall(...values);
  if (result !== -1n) return Number(result);
  const errno = ffi.getInt32(libc.__errno_location());
  throw Object.assign(new Error(`error ${errno}`), { code: names[errno] ?? `E${errno}` });
}

const names = { 1: "EPERM", 2: "ENOENT", 3: "ESRCH", 9: "EBADF", 13: "EACCES", 22: "EINVAL", 38: "ENOSYS" };
const bytes = (size) => Buffer.alloc(size);
const table = (texts) => {
  const list = bytes((texts.length + 1) * 8);
  for (const [at, text] of texts.entries()) list.writeBigUInt64LE(address(Buffer.from(`${text}\0`)), at * 8);
  return list;
};
const settled = (start) => new Promise((resolve, reject) => start(resolve, reject));
const opened = (emitter, event, resolve, reject) => emitter.once("error", reject).once(event, () => resolve(event));
/** A message of `sendmsg` with one byte and one descriptor. */
const message = () => {
  const parts = bytes(16);
  parts.writeBigUInt64LE(address(Buffer.from("x")), 0);
  parts.writeBigUInt64LE(1n, 8);
  const control = bytes(24);
  control.writeBigUInt64LE(20n, 0);
  control.writeInt32LE(1, 8); // SOL_SOCKET
  control.writeInt32LE(1, 12); // SCM_RIGHTS
  const header = bytes(56);
  header.writeBigUInt64LE(address(parts), 16);
  header.writeBigUInt64LE(1n, 24);
  header.writeBigUInt64LE(address(control), 32);
  header.writeBigUInt64LE(24n, 40);
  return header;
};
const inWorker = (code) =>
  settled((resolve, reject) => {
    const worker = new Worker(
      `try { (${code})(); } catch (error) { throw Object.assign(new Error("no"), { code: error.code }); }`,
      { eval: true },
    );
    worker.once("error", reject).once("exit", resolve);
  });

const files = {
  "reads a file outside": () => fs.readFileSync(secret, "utf8"),
  "lists a folder outside": () => fs.readdirSync(outside),
  "lists the root folder": () => fs.readdirSync("/"),
  "writes a file outside": () => fs.writeFileSync(secret, "changed"),
  "appends to a file outside": () => fs.appendFileSync(secret, "more"),
  "creates a file outside": () => fs.writeFileSync(join(outside, "new"), ""),
  "makes a folder outside": () => fs.mkdirSync(join(outside, "folder")),
  "removes a file outside": () => fs.unlinkSync(join(outside, "spare")),
  "removes a folder outside": () => fs.rmdirSync(join(outside, "empty")),
  "reads through a link in its own folder": () => fs.readFileSync(join(own, "link"), "utf8"),
  "makes a symbolic link": () => fs.symlinkSync(secret, join(data, "link")),
  "makes a hard link to a file outside": () => fs.linkSync(secret, join(data, "hard")),
  "moves a file from outside": () => fs.renameSync(join(outside, "movable"), join(data, "moved")),
  "moves its own program": () => fs.renameSync(join(own, "movable"), join(data, "moved")),
  "overwrites a file that it may read": () => fs.writeFileSync(victim, "changed"),
  "creates a file in its own folder": () => fs.writeFileSync(join(own, "new"), ""),
  "reads by a path with dots": () => fs.readFileSync(`${own}/../outside/secret.txt`, "utf8"),
  "reads by /proc/self/root": () => fs.readFileSync(`/proc/self/root${secret}`, "utf8"),
  "reads by /proc/self/cwd": () => {
    process.chdir(own);
    return fs.readFileSync("/proc/self/cwd/../outside/secret.txt", "utf8");
  },
  "reads /etc/passwd": () => fs.readFileSync("/etc/passwd", "utf8").length,
  "reads the environment of its host": () => fs.readFileSync(`/proc/${host}/environ`).length,
  "reads the arguments of its host": () => fs.readFileSync(`/proc/${host}/cmdline`).length,
  "opens the memory of its host": () => fs.openSync(`/proc/${host}/mem`, "r+"),
  "lists the descriptors of its host": () => fs.readdirSync(`/proc/${host}/fd`),
  "reads by the root of its host": () => fs.readFileSync(`/proc/${host}/root${secret}`, "utf8"),
  "lists processes": () => fs.readdirSync("/proc").length,
  "reads the sockets of the system": () => fs.readFileSync("/proc/net/unix", "utf8").length,
  "reads its own environment by /proc": () => fs.readFileSync("/proc/self/environ").length,
  "reads its own memory map": () => fs.readFileSync("/proc/self/maps").length,
  "reads the mounts": () => fs.readFileSync("/proc/self/mounts").length,
  "changes a setting of the kernel": () => fs.openSync("/proc/sys/kernel/core_pattern", "r+"),
  "reads cgroups": () => fs.readdirSync("/sys/fs/cgroup"),
  "opens the file by which processes leave its cgroup": () => fs.openSync(join(cgroups, "cgroup.procs"), "r+"),
  "opens its own limit of memory": () => fs.openSync(join(cgroups, `sandbox-${host}-1/memory.max`), "r+"),
  "makes shared memory": () => {
    const file = `/dev/shm/modhost-test-${process.pid}`;
    fs.writeFileSync(file, "");
    fs.unlinkSync(file);
  },
  "opens another device": () => fs.openSync("/dev/full", "r"),
  "watches a folder outside": () => fs.watch(outside, { persistent: false }) && "watching",
  "changes the mode of its own file": () => fs.chmodSync(victim, 0o777),
  "changes the owner of its own file": () => fs.chownSync(victim, process.getuid(), process.getgid()),
  "changes the times of a file outside": () => fs.utimesSync(secret, 1, 1),
  "changes the times of its own file": () => fs.utimesSync(victim, 1, 1),
  "shortens a file outside": () => fs.truncateSync(secret, 1),
  "reads outside in a worker thread": () =>
    inWorker(`() => require("node:fs").readFileSync(${JSON.stringify(secret)})`),
  "reads outside with SQLite": async () => {
    const { DatabaseSync } = await import("node:sqlite");
    new DatabaseSync(join(outside, "new.sqlite")).exec("create table x(y)");
  },
};

const others = {
  "looks for its host by a signal": () => process.kill(host, 0),
  "starts a program": () => {
    const { error, stdout } = spawnSync("/bin/true");
    if (error) throw error;
    return String(stdout);
  },
  "starts Node again": () => {
    const { error, stdout } = spawnSync(process.execPath, ["-p", "1"]);
    if (error) throw error;
    return String(stdout);
  },
  "connects to a TCP port": () =>
    settled((...ends) => opened(net.connect(facts.port, "127.0.0.1"), "connect", ...ends)),
  "listens at a TCP port": () =>
    settled((...ends) => opened(net.createServer().listen(0, "127.0.0.1").unref(), "listening", ...ends)),
  "sends a UDP packet": () =>
    settled((resolve, reject) => {
      const socket = dgram.createSocket("udp4").unref().once("error", reject);
      socket.send("x", facts.port, "127.0.0.1", (error) => (error ? reject(error) : resolve("sent")));
    }),
  "connects to a Unix socket of its host": () =>
    settled((...ends) => opened(net.connect(join(outside, "host.sock")), "connect", ...ends)),
  "listens at a Unix socket": () =>
    settled((...ends) => opened(net.createServer().listen(join(data, "s")).unref(), "listening", ...ends)),
  "listens at an abstract socket": () =>
    settled((...ends) => opened(net.createServer().listen(`\0modhost-${process.pid}`).unref(), "listening", ...ends)),
  "changes its priority": () => process.getBuiltinModule("node:os").setPriority(1),
};

const O_TRUNC = 0o1000;
const pathFd = () => fs.openSync(own, fs.constants.O_RDONLY);
const native = {
  "creates a program that runs as its owner": () => call(2, join(data, "program"), 0o101, 0o4755),
  "creates a program that runs as its group": () => call(257, -100, join(data, "program2"), 0o101, 0o2755),
  "empties a file that it may read": () => call(2, victim, O_TRUNC),
  "empties a file by openat": () => call(257, -100, victim, O_TRUNC),
  "empties a file with the access mode 3": () => call(2, victim, O_TRUNC | 3),
  "opens with openat2": () => call(437, -100, secret, bytes(24), 24),
  "shortens its own file by its path": () => call(76, victim, 1),
  "creates a file by creat": () => call(85, join(outside, "creat"), 0o666),
  "changes a mode by fchmodat": () => call(268, -100, victim, 0o777),
  "changes a mode by fchmodat2": () => call(452, -100, victim, 0o777, 0),
  "changes an owner by fchown": () => call(93, fs.openSync(victim, "r"), process.getuid(), process.getgid()),
  "changes times by a descriptor": () => call(280, fs.openSync(victim, "r"), 0, 0, 0),
  "sets an extended attribute": () => call(188, victim, "user.x", "y", 1, 0),
  "sets an extended attribute of a descriptor": () => call(190, fs.openSync(victim, "r"), "user.x", "y", 1, 0),
  "removes an extended attribute": () => call(197, victim, "user.kept"),
  "makes a pipe in a folder": () => call(133, join(data, "pipe"), 0o010600, 0),
  "makes a device": () => call(133, join(data, "device"), 0o020600, 0x103),
  "watches with inotify": () => call(254, call(294, 0), outside, 2),
  "watches with fanotify": () => call(300, 0, 0),
  "gets a handle of a file": () =>
    call(303, -100, secret, Buffer.concat([Buffer.from([128, 0, 0, 0]), bytes(132)]), bytes(4), 0),
  "opens by a handle": () => call(304, -100, bytes(136), 0),
  "leases a file": () => call(72, fs.openSync(victim, "r"), 1024, 0),
  "watches a folder by fcntl": () => call(72, pathFd(), 1026, 2),
  "names the receiver of signals": () => call(72, 3, 8, host),
  "sends a signal to its host": () => call(62, host, 0),
  "sends a signal to all": () => call(62, -1, 0),
  "sends a signal to a group": () => call(62, -host, 0),
  "sends a signal by tkill": () => call(200, host, 0),
  "sends a signal by tgkill": () => call(234, host, host, 0),
  "queues a signal": () => call(129, host, 0, bytes(128)),
  "opens a handle of its host": () => call(434, host, 0),
  "traces its host": () => call(101, 0x4206, host, 0, 0),
  "lets itself be traced": () => call(101, 0, 0, 0, 0),
  "reads the memory of its host": () => call(310, host, bytes(16), 0, bytes(16), 0, 0),
  "writes the memory of its host": () => call(311, host, bytes(16), 0, bytes(16), 0, 0),
  "compares itself with its host": () => call(312, process.pid, host, 1, 0, 0),
  "reads the limits of its host": () => call(302, host, 7, 0, bytes(16)),
  "reads the limits of its parent": () => call(302, process.ppid, 7, 0, bytes(16)),
  "chooses the processors of its host": () => call(203, host, 8, Buffer.from([255, 0, 0, 0, 0, 0, 0, 0])),
  "chooses its own processors": () => call(203, 0, 8, Buffer.from([255, 0, 0, 0, 0, 0, 0, 0])),
  "changes the scheduling of its host": () => call(144, host, 0, bytes(4)),
  "changes the scheduling by attributes": () => call(314, host, Buffer.concat([Buffer.from([48]), bytes(47)]), 0),
  "changes the priority of its host": () => call(141, 0, host, 0),
  "changes the disk priority of its host": () => call(251, 1, host, 0),
  "reads the locks of its host": () => call(274, host, bytes(8), bytes(8)),
  "moves the memory of its host": () => call(256, host, 1, bytes(8), bytes(8)),
  "makes a socket of IPv4": () => call(41, 2, 1, 0),
  "makes a socket of IPv6": () => call(41, 10, 1, 0),
  "makes a Unix socket": () => call(41, 1, 1, 0),
  "makes a raw socket": () => call(41, 2, 3, 1),
  "makes a netlink socket": () => call(41, 16, 3, 0),
  "makes a packet socket": () => call(41, 17, 3, 0),
  "makes a socket of the kernel's ciphers": () => call(41, 38, 5, 0),
  "makes a socket of virtual machines": () => call(41, 40, 1, 0),
  "makes a pair of sockets": () => call(53, 1, 1, 0, bytes(8)),
  "connects an inherited socket": () =>
    call(42, 4, Buffer.concat([Buffer.from([1, 0]), Buffer.from(`${join(outside, "host.sock")}\0`)]), 108),
  "binds an inherited socket": () =>
    call(49, 3, Buffer.concat([Buffer.from([1, 0]), Buffer.from(`${join(data, "b")}\0`)]), 108),
  "sends a descriptor to its host": () => call(46, 3, message(), 0),
  "receives a descriptor": () => call(47, 3, message(), 0x40),
  "receives several messages": () => call(299, 3, bytes(64), 1, 0x40, 0),
  "sends several messages": () => call(307, 3, bytes(64), 0, 0),
  "sends to an address": () => call(44, 3, "x", 1, 0, 0, 0),
  "gets a handle of its peer": () => call(55, 3, 1, 77, bytes(4), Buffer.from([4, 0, 0, 0])),
  "gets the process id of its peer": () => call(55, 3, 1, 17, bytes(12), Buffer.from([12, 0, 0, 0])),
  "asks for credentials with messages": () => call(54, 3, 1, 16, Buffer.from([1, 0, 0, 0]), 4),
  "makes shared memory of System V": () => call(31, call(29, 0, 4096, 0o1600), 0, 0),
  "makes a message queue of System V": () => call(71, call(68, 0, 0o1600), 0, 0),
  "makes a semaphore of System V": () => call(66, call(64, 0, 1, 0o1600), 0, 0),
  "makes a message queue of POSIX": () => {
    call(240, `modhost-${process.pid}`, 0o102, 0o600, 0);
    return call(241, `modhost-${process.pid}`);
  },
  "makes a file in memory": () => call(319, "x", 0),
  "sets up io_uring": () => call(425, 1, bytes(120)),
  "loads a program of BPF": () => call(321, 0, bytes(72), 72),
  "opens performance counters": () =>
    call(298, Buffer.concat([Buffer.from([1, 0, 0, 0, 112, 0, 0, 0]), bytes(104)]), 0, -1, -1, 0),
  "handles page faults": () => call(323, 1),
  "reads its keys": () => call(250, 0, -3, 1),
  "opens a file system": () => call(430, "tmpfs", 0),
  "opens a tree of mounts": () => call(428, -100, own, 1),
  "makes a namespace of users": () => call(272, 0x10000000),
  "makes a namespace of files": () => call(272, 0x20000),
  "enters a namespace": () => call(308, 0, 0),
  "sets its capabilities": () => call(126, Buffer.from([0x22, 5, 8, 0x20, 0, 0, 0, 0].reverse()), bytes(24)),
  "forgets that it ends with its parent": () => call(157, 1, 0),
  "chooses who may trace it": () => call(157, 0x59616d61, -1),
  "changes whether it can be dumped": () => call(157, 4, 0),
  "adds a filter of system calls": () => call(317, 2, 0, bytes(4)),
  "makes rules of Landlock": () => call(444, Buffer.from([1, 0, 0, 0, 0, 0, 0, 0]), 8, 0),
  "types on a terminal": () => call(16, 0, 0x5412, "x"),
  "sets flags of a file": () => call(16, fs.openSync(victim, "r"), 0x40086602, bytes(8)),
  "reads the log of the kernel": () => call(103, 10, 0, 0),
  "changes its execution domain": () => call(135, 0xffffffff),
  "changes the table of segments": () => call(154, 0, bytes(16), 16),
  "reads memory policies of others": () => call(279, host, 0, 0, 0, 0, 0),
  "writes all files to the disk": () => call(162),
};

/** Calls that would change the machine or end this program. The control leaves them out. */
const final = {
  forks: () => call(57),
  "forks by clone": () => call(56, 17),
  "starts a process by clone3": () => call(435, bytes(88), 88),
  "executes a program": () => call(59, "/bin/true", table(["true"]), table([])),
  "executes Node": () => call(59, process.execPath, table([process.execPath, "-p", "1"]), table([])),
  "executes a file that it wrote": () => {
    fs.writeFileSync(join(data, "script"), "#!/bin/sh\n", { mode: 0o755 });
    return call(59, join(data, "script"), table(["script"]), table([]));
  },
  "executes by a descriptor": () =>
    call(322, fs.openSync(process.execPath, "r"), "", table(["node", "-p", "1"]), table([]), 0x1000),
  "reads through an inherited descriptor": () => {
    for (let fd = 5; fd < 64; fd += 1) {
      const flags = flagsOf(fd);
      if (flags === undefined || (flags & 0o10000000) === 0) continue;
      const read = fs.readSync(fd, bytes(1));
      return `${read} bytes of ${fd}`;
    }
    throw Object.assign(new Error("none"), { code: "EBADF" });
  },
  "changes the name of the host": () => call(170, "x", 1),
  "sets the clock": () => call(227, 0, bytes(16)),
  "adds a key": () => call(248, "user", "modhost", "x", 1, -2),
  mounts: () => call(165, "none", data, "tmpfs", 0, 0),
  unmounts: () => call(166, data, 0),
  "changes the root folder": () => call(161, own),
  "becomes root": () => call(105, 0),
  "changes its groups": () => call(116, 0, 0),
  reboots: () => call(169, 0, 0, 0, 0),
  "loads a module of the kernel": () => call(175, bytes(8), 8, ""),
  "loads another kernel": () => call(246, 0, 0, 0, 0),
  swaps: () => call(167, join(data, "x"), 0),
  "gets at ports of the machine": () => call(172, 3),
  "hangs up the terminal": () => call(153),
};

function flagsOf(fd) {
  try {
    return call(72, fd, 3);
  } catch {
    return undefined;
  }
}

/** Refused by Node's own permissions, not by the kernel. */
const permissions = {
  "loads an addon": () => process.dlopen({ exports: {} }, join(own, "addon.node")),
  "asks for native calls": () => process.getBuiltinModule("node:ffi").dlopen,
  "looks for a file outside": () => fs.statSync(secret).size,
  "opens an inspector": () => process.getBuiltinModule("node:inspector").open(0),
  "reads by a binding of Node": () => process.binding("fs").readFileUtf8(secret, 0),
  "runs a program of WASI": () => new (process.getBuiltinModule("node:wasi").WASI)({ version: "preview1" }),
};

/** Uses that the sandbox must not break. */
const allowed = {
  "reads its own file": () => fs.readFileSync(victim, "utf8"),
  "writes, copies, moves and removes its data": () => {
    fs.mkdirSync(join(data, "a"));
    fs.writeFileSync(join(data, "a/1"), "one");
    fs.copyFileSync(join(data, "a/1"), join(data, "a/2"));
    fs.renameSync(join(data, "a/2"), join(data, "a/3"));
    fs.appendFileSync(join(data, "a/3"), "more");
    fs.truncateSync(join(data, "a/3"), 5);
    const text = fs.readFileSync(join(data, "a/3"), "utf8");
    fs.rmSync(join(data, "a"), { recursive: true });
    return text;
  },
  "knows its memory": () => process.memoryUsage().rss > 0,
  "knows the processors": () => process.getBuiltinModule("node:os").cpus().length > 0,
  "has only its own environment": () => JSON.stringify(process.env),
  "starts a worker thread": () => inWorker("() => 0"),
  "signals itself": () => process.kill(process.pid, 0),
  "opens a database": async () => {
    const { DatabaseSync } = await import("node:sqlite");
    const database = new DatabaseSync(join(data, "db"));
    database.exec("create table x(y); insert into x values (1)");
    return database.prepare("select count(*) as n from x").get().n;
  },
  "compresses, hashes and compiles": async () => {
    const { gzipSync } = await import("node:zlib");
    await crypto.subtle.digest("SHA-256", gzipSync("x"));
    await WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));
    return "done";
  },
  "serves the inherited listener": () =>
    settled((...ends) =>
      opened(
        net
          .createServer((socket) => socket.end("served"))
          .listen({ fd: 4 })
          .unref(),
        "listening",
        ...ends,
      ),
    ),
};

const outcomes = {};
const sets = isNative ? [files, others, native, ...(isControl ? [] : [final])] : [files, others, permissions];
if (!isControl) sets.unshift(allowed);
for (const [name, attempt] of sets.flatMap((set) => Object.entries(set))) {
  if (tries !== undefined && !tries.includes(name)) continue;
  try {
    outcomes[name] = `got ${String(await attempt()).slice(0, 60)}`;
  } catch (error) {
    outcomes[name] = `refused ${error.code ?? error.message}`;
  }
}
if (facts.isX32) call(0x40000000 + 39);
const socket = new net.Socket({ fd: 3, readable: true, writable: true });
socket.end(JSON.stringify({ outcomes, allowed: Object.keys(allowed) }), () => process.exit(0));
