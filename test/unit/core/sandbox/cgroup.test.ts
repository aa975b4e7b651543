/** How a server divides its cgroup, with a folder in place of the kernel's. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { type TestContext, test } from "node:test";
import { type CgroupSystem, ServerCgroup } from "#core/sandbox/cgroup.ts";
import { eventually } from "#test/support/eventually.ts";

const SERVER = 100;
const limits = { memory: 512 * 2 ** 20, tasks: 128, cores: 0.5 };
const files = ["memory.max", "memory.oom.group", "memory.swap.max", "memory.events", "pids.max", "cpu.max"];

interface FakeKernel {
  readonly system: CgroupSystem;
  readonly service: string;
  /** Every act of the server, the first one first. */
  readonly acts: string[];
  /** Set: this write fails with the code. */
  refuse: { readonly file: string; readonly code: string } | undefined;
  /** Writes the ids of the processes of a cgroup. */
  fill(folder: string, pids: readonly number[]): void;
}

/**
 * `path`: the cgroup of the server; `processes`: ids and process groups of those in its service.
 */
function fakeKernel(t: TestContext, path = "/app.service", processes: readonly (readonly number[])[] = []): FakeKernel {
  const folder = mkdtempSync(join(tmpdir(), "modhost-cgroup-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const mount = join(folder, "cgroup");
  const proc = join(folder, "proc");
  const service = join(mount, "app.service");
  const acts: string[] = [];
  const fill = (of: string, pids: readonly number[]) =>
    writeFileSync(join(of, "cgroup.procs"), pids.map((pid) => `${pid}\n`).join(""));
  const failure = (code: string) => Object.assign(new Error(code), { code });
  const pidsOf = (of: string) => readFileSync(join(of, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
  const system: CgroupSystem = {
    mount,
    proc,
    pid: SERVER,
    make(made) {
      if (existsSync(made)) throw failure("EEXIST");
      mkdirSync(made);
      acts.push(`make ${relative(service, made)}`);
      for (const name of [...files, "cgroup.kill"]) writeFileSync(join(made, name), "");
      fill(made, []);
    },
    remove(removed) {
      if (pidsOf(removed).length > 0) throw failure("EBUSY");
      rmSync(removed, { recursive: true });
      acts.push(`remove ${relative(service, removed)}`);
    },
    write(file, text) {
      const at = dirname(file);
      const name = basename(file);
      if (fake.refuse !== undefined && file.endsWith(fake.refuse.file)) throw failure(fake.refuse.code);
      if (!existsSync(file)) throw failure("ENOENT");
      if (name === "cgroup.subtree_control" && pidsOf(at).length > 0) throw failure("EBUSY");
      acts.push(`${relative(service, file)} ${text}`);
      if (name === "cgroup.kill") fill(at, []);
      if (name !== "cgroup.procs") return;
      fill(
        service,
        pidsOf(service).filter((pid) => pid !== Number(text)),
      );
      fill(at, [...pidsOf(at), Number(text)]);
    },
  };
  const fake: FakeKernel = { system, service, acts, refuse: undefined, fill };
  mkdirSync(join(proc, "self"), { recursive: true });
  writeFileSync(join(proc, "self/cgroup"), `4:memory:/other\n0::${path}\n`);
  writeFileSync(join(proc, "self/stat"), `${SERVER} (node) S 1 ${SERVER} ${SERVER} 0`);
  mkdirSync(service, { recursive: true });
  writeFileSync(join(service, "cgroup.controllers"), "cpuset cpu io memory pids\n");
  writeFileSync(join(service, "cgroup.subtree_control"), "");
  fill(
    service,
    processes.map(([pid = 0]) => pid),
  );
  for (const [pid, group] of processes) {
    mkdirSync(join(proc, String(pid)));
    writeFileSync(join(proc, `${pid}/stat`), `${pid} (a (b) c) S 1 ${group} 1 0`);
  }
  return fake;
}

/** Makes the cgroup of a sandbox, and closes its entrance. */
function made(cgroup: ServerCgroup) {
  const sandbox = cgroup.create(limits);
  assert.ok(sandbox, cgroup.missing);
  closeSync(sandbox.entrance);
  return sandbox;
}

const own = [
  [SERVER, SERVER],
  [101, SERVER],
] as const;

test("a server moves out of its cgroup, divides it, and limits a sandbox before anything is in it", (t) => {
  const { system, acts } = fakeKernel(t, "/app.service", own);
  const cgroup = new ServerCgroup(system);
  assert.equal(cgroup.missing, undefined);
  assert.deepEqual(acts, [], "looking changes nothing");
  made(cgroup);
  assert.deepEqual(acts, [
    "make modhost-server",
    "modhost-server/cgroup.procs 100",
    "modhost-server/cgroup.procs 101",
    "cgroup.subtree_control +memory +pids +cpu",
    "make sandbox-100-1",
    "sandbox-100-1/memory.max 536870912",
    "sandbox-100-1/memory.oom.group 1",
    "sandbox-100-1/pids.max 128",
    "sandbox-100-1/cpu.max 50000 100000",
    "sandbox-100-1/memory.swap.max 0",
  ]);
  acts.length = 0;
  made(cgroup);
  assert.equal(acts[0], "make sandbox-100-2", "it is divided once");
});

test("a cgroup is removed with everything that is left in it", async (t) => {
  const { system, service, fill } = fakeKernel(t, "/app.service", own);
  const sandbox = made(new ServerCgroup(system));
  const folder = join(service, "sandbox-100-1");
  fill(folder, [200, 201]);
  await sandbox.end();
  assert.equal(existsSync(folder), false);
  assert.equal(sandbox.killedAt, undefined);
  await sandbox.end();
});

test("a cgroup whose processes need a moment to end is removed after that", async (t) => {
  const fake = fakeKernel(t, "/app.service", own);
  const { system, service, fill } = fake;
  const sandbox = made(new ServerCgroup(system));
  const folder = join(service, "sandbox-100-1");
  fill(folder, [200]);
  fake.refuse = { file: "cgroup.kill", code: "ENOENT" };
  const ended = sandbox.end();
  assert.equal(existsSync(folder), true, "Linux before 5.14 cannot kill a cgroup");
  fill(folder, []);
  await ended;
  assert.equal(existsSync(folder), false);
});

test("a sandbox that the kernel killed for its memory says at which limit; another kill is none of its own", async (t) => {
  const { system, service } = fakeKernel(t, "/app.service", own);
  const cgroup = new ServerCgroup(system);
  let count = 0;
  const killedAt = async (events: string) => {
    const sandbox = made(cgroup);
    count += 1;
    writeFileSync(join(service, `sandbox-100-${count}`, "memory.events"), events);
    await sandbox.end();
    return sandbox.killedAt;
  };
  assert.equal(await killedAt("max 9\noom 1\noom_kill 3\n"), limits.memory);
  assert.equal(await killedAt("max 0\noom 0\noom_kill 1\n"), undefined, "the machine was out of memory");
  assert.equal(await killedAt("max 9\noom 1\noom_kill 0\n"), undefined);
});

test("the next start removes the cgroups of a killed server, and leaves those of running processes", async (t) => {
  // The previous server still finishes requests: both are in the cgroup that it has made.
  const { system, service, acts, fill } = fakeKernel(t, "/app.service/modhost-server");
  for (const name of ["modhost-server", "sandbox-50-1", "sandbox-99-1", "sandbox-100-7", "sandbox-x", "other"])
    system.make(join(service, name));
  fill(join(service, "modhost-server"), [99, SERVER]);
  fill(join(service, "sandbox-50-1"), [51]);
  acts.length = 0;
  made(new ServerCgroup(system));
  await eventually("the cgroup of the killed server is removed", () => !existsSync(join(service, "sandbox-50-1")));
  for (const name of ["sandbox-99-1", "sandbox-100-7", "sandbox-x", "other", "sandbox-100-1"])
    assert.equal(existsSync(join(service, name)), true, name);
  assert.equal(
    acts.some((act) => act.startsWith("make modhost-server") || act.startsWith("modhost-server/")),
    false,
    "nobody is moved",
  );
});

test("the cgroup of a process that starts while others are removed is left alone", async (t) => {
  const { system, service } = fakeKernel(t, "/app.service/modhost-server");
  for (const name of ["modhost-server", "sandbox-50-1"]) system.make(join(service, name));
  const list = join(service, "modhost-server/cgroup.procs");
  rmSync(list);
  spawnSync("mkfifo", [list]);
  // A pipe in place of the list: the other process makes its cgroup while the list is read, which
  // does not contain it yet.
  const script = 'exec 3>"$0"; cp -r "$1/sandbox-50-1" "$1/sandbox-101-1"; echo 100 >&3';
  const other = spawn("sh", ["-c", script, list, service]);
  made(new ServerCgroup(system));
  await once(other, "exit");
  await eventually("the cgroup of a killed server is removed", () => !existsSync(join(service, "sandbox-50-1")));
  assert.equal(existsSync(join(service, "sandbox-101-1")), true);
});

test("a cgroup that a killed process with the same id has left is not in the way", (t) => {
  const { system, service } = fakeKernel(t, "/app.service/modhost-server");
  for (const name of ["modhost-server", "sandbox-100-1"]) system.make(join(service, name));
  made(new ServerCgroup(system));
  assert.equal(existsSync(join(service, "sandbox-100-2")), true);
});

test("a process that has started before another one divided the cgroup uses the same", (t) => {
  const { system, service } = fakeKernel(t, "/app.service", own);
  const second = new ServerCgroup({ ...system, pid: 101 });
  made(new ServerCgroup(system));
  made(second);
  assert.equal(existsSync(join(service, "sandbox-101-1")), true);
});

test("a cgroup with programs of others is left alone", (t) => {
  const { system, service, acts } = fakeKernel(t, "/app.service", [...own, [300, 300]]);
  const cgroup = new ServerCgroup(system);
  assert.equal(cgroup.missing, `The server shares its cgroup ${service} with other programs.`);
  assert.equal(cgroup.create(limits), undefined);
  assert.deepEqual(acts, []);
});

test("a machine without cgroups of version 2, or without their controllers, is named as such", (t) => {
  const { system, service } = fakeKernel(t, "/app.service", own);
  const missing = () => new ServerCgroup(system).missing;
  writeFileSync(join(service, "cgroup.controllers"), "cpuset memory\n");
  assert.equal(missing(), `The cgroup ${service} has no controllers for pids, cpu.`);
  rmSync(join(service, "cgroup.controllers"));
  assert.equal(missing(), `There is no cgroup of version 2 at ${service}.`);
  writeFileSync(join(system.proc, "self/cgroup"), "4:memory:/other\n");
  assert.equal(missing(), "The system has no cgroups of version 2.");
  assert.equal(new ServerCgroup(system).create(limits), undefined);
});

test("a cgroup that the kernel refuses to divide has the reason, and nothing is left of it", (t) => {
  const fake = fakeKernel(t, "/app.service", own);
  const { system, service } = fake;
  const cgroup = new ServerCgroup(system);
  fake.refuse = { file: "pids.max", code: "EACCES" };
  assert.equal(cgroup.create(limits), undefined);
  assert.equal(cgroup.missing, `The cgroup ${service} cannot be divided: EACCES.`);
  assert.equal(existsSync(join(service, "sandbox-100-1")), false);
  fake.refuse = { file: "memory.swap.max", code: "ENOENT" };
  made(cgroup);
  assert.equal(cgroup.missing, undefined, "a kernel that does not count swap is no reason");
});

test("processes that start faster than they are moved keep a cgroup from being divided", (t) => {
  const fake = fakeKernel(t, "/app.service", own);
  fake.refuse = { file: "cgroup.subtree_control", code: "EBUSY" };
  const cgroup = new ServerCgroup(fake.system);
  assert.equal(cgroup.create(limits), undefined);
  assert.match(cgroup.missing ?? "", /cannot be divided: it still has processes of its own\.$/);
});
