/** How a sandboxed process is started, and what it may still do. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  launchSandboxed,
  moduleProcess,
  type Sandboxed,
  type SandboxLaunch,
  type SandboxPolicy,
  sandboxLayers,
  sandboxUnavailable,
  sandboxUser,
} from "#core/sandbox/index.ts";
import { FIRST_USER, userOf } from "#core/sandbox/users.ts";
import { noNobody } from "#test/support/sandbox/combinations.ts";
import { eventually } from "../../../support/eventually.ts";

const unavailable = sandboxUnavailable();
const works = (name: string) => sandboxLayers().some((layer) => layer.name === name && layer.works);
const folder = realpathSync(mkdtempSync(join(tmpdir(), "modhost-launch-")));
chmodSync(folder, 0o755);
for (const name of ["own", "data", "listen"]) mkdirSync(join(folder, name));
after(() => rmSync(folder, { recursive: true, force: true }));
let count = 0;
const NOBODY = 65534;
const packages = fileURLToPath(new URL("../../../../node_modules", import.meta.url));
/** An addon of any Node.js, which the optional package classic-level brings. */
const addon = globSync(`classic-level/prebuilds/${process.platform}-${process.arch}/*.node`, { cwd: packages })
  .filter((file) => !file.includes("musl"))
  .map((file) => realpathSync(join(packages, file)))
  .at(0);

type Changes = Omit<Partial<SandboxLaunch>, "policy"> & { readonly policy?: Partial<SandboxPolicy> };

/** Starts a program that evaluates some code, with `socket` for its channel. */
function launch(code: string, { policy, ...more }: Changes = {}): Sandboxed {
  const program = join(folder, "own", `${(count += 1)}.mjs`);
  const head = `import net from "node:net";\nconst socket = new net.Socket({ fd: 3, readable: true, writable: true });\n`;
  writeFileSync(program, head + code);
  return launchSandboxed({
    name: "shop",
    program,
    args: [],
    listen: join(folder, "listen", `${count}`),
    policy: {
      read: [join(folder, "own")],
      write: [join(folder, "data")],
      run: [],
      addons: false,
      env: {},
      namespaces: "off",
      user: "same",
      ...policy,
    },
    ...more,
  });
}

const ended = (child: ChildProcess) => new Promise((resolve) => void child.once("exit", resolve));

/** Returns what the program writes to its channel, once it has ended. */
async function written(sandboxed: Sandboxed): Promise<string> {
  const { child, socket } = sandboxed;
  const [output, errors] = await Promise.all([text(socket), text(child.stderr!), ended(child)]);
  return errors === "" ? output : `${output}${errors}`;
}

test("a Node.js or system that cannot sandbox is refused with a sentence that says what is missing", () => {
  const major = Number.parseInt(process.versions.node, 10);
  if (process.platform === "linux" && major >= 26) return;
  assert.match(unavailable ?? "", /^A sandbox needs (Node\.js 26|Linux 5\.13) or later, and this is .+\. .+\.$/);
  assert.throws(() => launch(""), { code: "SANDBOX_UNAVAILABLE" });
});

test("other systems and processors are refused with a sentence that says what is missing, and how to get it", (t) => {
  const here = { platform: process.platform, arch: process.arch };
  const emulate = (values: Partial<typeof here>) => {
    for (const [name, value] of Object.entries({ ...here, ...values }))
      Object.defineProperty(process, name, { value, configurable: true, enumerable: true });
  };
  t.after(() => emulate({}));
  for (const platform of ["darwin", "win32", "freebsd"] as const) {
    emulate({ platform });
    const sentence = `A sandbox needs Linux 5.13 or later, and this is ${platform}. Run modhost in a Linux container or virtual machine. Run the module isolated or trusted.`;
    assert.equal(sandboxUnavailable(), sentence);
    assert.deepEqual(
      sandboxLayers().map(({ name, works, isRequired }) => [name, works, isRequired]),
      [["system", false, true]],
      "no other layer is looked for",
    );
    assert.throws(() => launch(""), { code: "SANDBOX_UNAVAILABLE", message: new RegExp(sentence) });
  }
  emulate({ platform: "linux", arch: "riscv64" });
  assert.match(
    sandboxUnavailable() ?? "",
    /^A sandbox needs a processor of the kind x64 or arm64, and this is riscv64\./,
  );
});

test("a service without capabilities, whose unit refuses capset to it, can sandbox modules", {
  skip: unavailable ?? noNobody,
}, () => {
  const program = `
    import { ALLOW, fail, give, ifEqual, load, NUMBER } from "#core/sandbox/filter/bpf.ts";
    import { sandboxUnavailable } from "#core/sandbox/index.ts";
    import { Libc } from "#core/sandbox/kernel/libc.ts";
    import { calls } from "#core/sandbox/kernel/numbers.ts";
    import { installFilter, refusePrivileges } from "#core/sandbox/kernel/seccomp.ts";
    const libc = new Libc();
    refusePrivileges(libc);
    installFilter(libc, [load(NUMBER), ifEqual(calls.capset, 0, 1), give(fail(1)), give(ALLOW)]);
    console.log(sandboxUnavailable() ?? "works");`;
  const options = ["--no-warnings", "--experimental-ffi", "--conditions=source", "--input-type=module", "--eval"];
  const { stdout, stderr } = spawnSync(process.execPath, [...options, program], {
    ...(process.getuid?.() === 0 && { uid: NOBODY, gid: NOBODY }),
    cwd: fileURLToPath(new URL("../../../../", import.meta.url)),
    env: {},
    encoding: "utf8",
  });
  assert.equal(stdout.trim(), "works", stderr);
});

test("every layer says what it does, and one that does not work says how to get it", () => {
  for (const { works, detail, remedy } of sandboxLayers()) {
    assert.match(detail, /^[A-Z].*\.$/);
    assert.equal(remedy === undefined, works);
  }
});

test("a module has the same user each time, within the documented range", () => {
  assert.equal(userOf("shop"), userOf("shop"));
  assert.notEqual(userOf("shop"), userOf("shop2"));
  for (const name of ["", "a", "shop"]) assert.ok(userOf(name) >= FIRST_USER && userOf(name) < 2 ** 31);
});

describe("a sandboxed process", { skip: unavailable ?? false }, () => {
  test("answers over its channel, and serves connections of the inherited listener", async () => {
    const sandboxed = launch(`
      const server = net.createServer((connection) => connection.end("served")).listen({ fd: 4 }, () => socket.write("ready"));
      socket.on("data", () => server.close(() => process.exit(7)));`);
    await new Promise((resolve) => void sandboxed.socket.once("data", resolve));
    const listen = join(folder, "listen", `${count}`);
    assert.equal(statSync(listen).mode & 0o777, 0o600);
    assert.equal(await text(connect(listen)), "served");
    sandboxed.socket.write("end");
    assert.equal(await ended(sandboxed.child), 7);
  });

  test("has the environment, the arguments and the options of Node that it is given, and nothing else", async () => {
    const code = `socket.end(JSON.stringify([process.env, process.argv.slice(2), process.cwd(), process.execArgv.includes("--stack-size=900")]));`;
    const sandboxed = launch(code, {
      args: ["a b", "ü"],
      nodeOptions: ["--stack-size=900"],
      policy: { env: { KEY: "väl ue" } },
    });
    assert.equal(await written(sandboxed), JSON.stringify([{ KEY: "väl ue" }, ["a b", "ü"], "/", true]));
  });

  test("reads the compiled code at its descriptor, and can neither write nor open that file", async () => {
    const file = join(folder, "compiled");
    writeFileSync(file, "code", { mode: 0o600 });
    const compiled = openSync(file, "r");
    const sandboxed = launch(
      `import { openSync, readFileSync, writeSync } from "node:fs";
      const code = (act) => { try { act(); return "done"; } catch (error) { return error.code; } };
      const written = code(() => writeSync(6, "other"));
      const opened = code(() => openSync(${JSON.stringify(file)}));
      socket.end([readFileSync(6, "utf8"), written, opened].join());`,
      { compiled, policy: { user: "own" } },
    );
    closeSync(compiled);
    assert.match(await written(sandboxed), /^code,EBADF,(ERR_ACCESS_DENIED|EACCES)$/);
    assert.equal(readFileSync(file, "utf8"), "code");
  });

  test("has an empty descriptor where its compiled code would be", async () => {
    const code = `import { fstatSync, readFileSync } from "node:fs";
      socket.end([fstatSync(6).isCharacterDevice(), readFileSync(6, "utf8")].join());`;
    assert.equal(await written(launch(code)), "true,");
  });

  test("keeps secrets of its environment out of the arguments that others can read", async () => {
    const sandboxed = launch(`socket.write("x");`, { policy: { env: { KEY: "top secret" } } });
    const seen: string[] = [];
    const look = setInterval(() => seen.push(readFileSync(`/proc/${sandboxed.child.pid}/cmdline`, "utf8")), 1);
    await new Promise((resolve) => void sandboxed.socket.once("data", resolve));
    clearInterval(look);
    sandboxed.child.kill("SIGKILL");
    assert.ok(seen.length > 0);
    assert.ok(!seen.join().includes("top secret"));
  });

  test("keeps the files of its rules open, because the kernel would forget rules for /proc", async () => {
    const sandboxed = launch(`socket.write("x");`);
    await new Promise((resolve) => void sandboxed.socket.once("data", resolve));
    const fds = `/proc/${sandboxed.child.pid}/fd`;
    const files = readdirSync(fds).map((fd) => readlinkSync(join(fds, fd)));
    assert.ok(files.includes("/proc/stat") && files.includes(`/proc/${sandboxed.child.pid}/stat`), files.join());
    sandboxed.child.kill("SIGKILL");
  });

  test("obeys the limits of the kernel", async () => {
    const code = `
      import { openSync } from "node:fs";
      const opened = [];
      try { for (;;) opened.push(openSync("/dev/null")); } catch (error) { socket.end(error.code + " " + (opened.at(-1) < 60)); }`;
    assert.equal(await written(launch(code, { policy: { rlimits: { openFiles: 60 } } })), "EMFILE true");
  });

  test("starts only the programs that are granted", async () => {
    const code = `
      import { spawnSync } from "node:child_process";
      const run = (file) => { const { error, stdout } = spawnSync(file, ["it", "runs"]); return error?.code ?? String(stdout).trim(); };
      socket.end(JSON.stringify(["/bin/echo", "/bin/cat"].map(run)));`;
    const run = [realpathSync("/bin/echo")];
    assert.equal(await written(launch(code, { policy: { run } })), '["it runs","EACCES"]');
    assert.equal(await written(launch(code, { testing: { native: true } })), '["EPERM","EPERM"]');
  });

  test("loads addons only where they are granted", {
    skip: addon === undefined && "no addon is installed",
  }, async () => {
    const code = `
      const loaded = { exports: {} };
      try { process.dlopen(loaded, ${JSON.stringify(addon)}); socket.end(typeof loaded.exports); }
      catch (error) { socket.end(error.code); }`;
    const read = [join(folder, "own"), dirname(addon!)];
    assert.equal(await written(launch(code, { policy: { read, addons: true } })), "object");
    assert.equal(await written(launch(code, { policy: { read } })), "ERR_DLOPEN_DISABLED");
  });

  test("can end a child process that was granted", async () => {
    const code = `
      import { spawn } from "node:child_process";
      const child = spawn("/bin/sleep", ["60"]);
      child.on("exit", (code, signal) => socket.end(String(signal)));
      child.kill();`;
    const run = [realpathSync("/bin/sleep")];
    assert.equal(await written(launch(code, { policy: { run } })), "SIGTERM");
  });

  test("takes the programs that it has started with it when it ends", async () => {
    const code = `
      import { spawn } from "node:child_process";
      const child = spawn("/bin/sleep", ["600"], { stdio: "ignore" });
      child.unref();
      socket.end(String(child.pid), () => process.exit());`;
    const run = [realpathSync("/bin/sleep")];
    const pid = await written(launch(code, { policy: { run } }));
    assert.match(pid, /^\d+$/);
    await eventually("the program has ended", () => !existsSync(`/proc/${pid}`));
  });

  test("fails with the reason if its program cannot be read", async () => {
    const sandboxed = launch("", { program: join(folder, "own", "missing.mjs") });
    assert.match(await written(sandboxed), /^The sandbox cannot start \(user\): .*missing\.mjs/);
    assert.equal(sandboxed.child.exitCode, 113);
  });

  test("is refused if namespaces are required and do not work", {
    skip: works("namespaces") && "they work here",
  }, () => {
    assert.throws(() => launch("", { policy: { namespaces: "required" } }), /Bubblewrap does not work/);
  });

  test("runs as its own user, and leaves the files of others alone", {
    skip: !works("user") && "the user layer is missing",
  }, async () => {
    const user = sandboxUser("shop", "own")!;
    const data = join(folder, "data-of-shop");
    mkdirSync(data, { mode: 0o700 });
    chownSync(data, user, user);
    const code = `
      import { writeFileSync } from "node:fs";
      writeFileSync(${JSON.stringify(join(data, "file"))}, "");
      socket.end([process.getuid(), process.getgid(), process.getgroups()].join());`;
    assert.equal(await written(launch(code, { policy: { user: "own", write: [data] } })), [user, user, user].join());
    assert.equal(statSync(join(data, "file")).uid, user);
  });

  for (const namespaces of ["off", "required"] as const) {
    const skip = namespaces === "required" && !works("namespaces") && "the namespaces are missing";
    test(`can be found by its id, and ends with its host (namespaces: ${namespaces})`, { skip }, async () => {
      const host = `
        import { launchSandboxed, moduleProcess } from "#core/sandbox/index.ts";
        const sandboxed = launchSandboxed(JSON.parse(process.argv[1]));
        sandboxed.socket.once("data", () => console.log(moduleProcess(sandboxed)));`;
      const program = join(folder, "own", "waits.mjs");
      writeFileSync(
        program,
        `import net from "node:net"; new net.Socket({ fd: 3 }).write("x"); setInterval(() => 0, 1000);`,
      );
      const policy = {
        read: [join(folder, "own")],
        write: [],
        run: [],
        addons: false,
        env: {},
        namespaces,
        user: "same",
      };
      const given = { name: "waits", program, args: [], listen: join(folder, "listen", "waits"), policy };
      const root = new URL("../../../../", import.meta.url);
      const args = [
        "--no-warnings",
        "--conditions=source",
        "--input-type=module",
        "--eval",
        host,
        JSON.stringify(given),
      ];
      const child = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
      const pid = Number(await new Promise((resolve) => void child.stdout.once("data", resolve)));
      assert.match(readFileSync(`/proc/${pid}/cmdline`, "utf8"), /waits\.mjs/);
      child.kill("SIGKILL");
      await eventually("the sandbox has ended", () => !existsSync(`/proc/${pid}`));
    });
  }

  test("is in a cgroup with its limits when its code begins, and the cgroup is removed after its end", {
    skip: !works("cgroup") && "the server cannot divide its cgroup here",
  }, async () => {
    const memory = 2 ** 28;
    const code = `socket.write("ready"); setInterval(() => 0, 1000);`;
    const { child, socket, layers } = launch(code, { policy: { cgroup: { memory, tasks: 200, cores: 1 } } });
    await new Promise((resolve) => void socket.once("data", resolve));
    const [, path = ""] = /^0::(.*)$/m.exec(readFileSync(`/proc/${child.pid}/cgroup`, "utf8")) ?? [];
    assert.match(path, new RegExp(`/sandbox-${process.pid}-\\d+$`));
    const cgroup = join("/sys/fs/cgroup", path);
    assert.equal(readFileSync(join(cgroup, "memory.max"), "utf8").trim(), String(memory));
    assert.ok(layers.includes("cgroup"));
    child.kill("SIGKILL");
    await eventually("the cgroup is removed", () => !existsSync(cgroup));
  });

  test("runs in namespaces where they work", {
    skip: !works("namespaces") && "the namespaces are missing",
  }, async () => {
    const sandboxed = launch(
      `
      import { hostname, networkInterfaces } from "node:os";
      import { existsSync } from "node:fs";
      socket.end(JSON.stringify([hostname(), process.pid < 10, existsSync("/etc/passwd")]));`,
      {
        policy: { namespaces: "auto" },
        testing: { native: true },
      },
    );
    assert.ok(sandboxed.layers.includes("namespaces"));
    assert.equal(await written(sandboxed), '["sandbox",true,false]');
    assert.equal(moduleProcess(sandboxed), undefined);
  });
});
