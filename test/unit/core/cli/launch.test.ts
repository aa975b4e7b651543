import assert from "node:assert/strict";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { after, describe, test } from "node:test";

const launcher = new URL("../../../../core/cli/launch.mjs", import.meta.url);
const root = mkdtempSync(join(tmpdir(), "modhost-launch-"));
after(() => rm(root, { recursive: true }));

type Launched = ChildProcessByStdio<null, Readable, Readable>;

const built = "dist/core/cli/main.js";
const source = "core/cli/main.ts";

/** Creates a package that consists of the launcher and these files. */
async function tree(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(root, "package-"));
  const manifest = '{ "type": "module", "modhost": { "serving": ["node"] } }';
  for (const [path, content] of Object.entries({ "package.json": manifest, ...files })) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content, { mode: 0o755 });
  }
  await mkdir(join(folder, "core/cli"), { recursive: true });
  await copyFile(launcher, join(folder, "core/cli/launch.mjs"));
  return folder;
}

/** Code that runs before the launcher and makes it believe that Node.js is old. */
const oldNode = `data:text/javascript,${encodeURIComponent(`
  Object.defineProperty(process, "version", { value: "v20.1.0" });
  Object.defineProperty(process, "execve", { value: undefined });
`)}`;

/** The files of an installed package with Node.js, whose executable is the running one. */
const nodePackage = (version: string, name = "node") => ({
  [`node_modules/${name}/package.json`]: JSON.stringify({ version }),
  [`node_modules/${name}/bin/node`]: `#!/bin/sh\nexec "${process.execPath}" "$@"\n`,
});

const reporting =
  "console.log(JSON.stringify({ args: process.argv.slice(2), flags: process.execArgv })); process.exitCode = 7;";

function launch(folder: string, flags: string[], ...rest: (string | NodeJS.ProcessEnv)[]): Launched {
  const args = rest.filter((each) => typeof each === "string");
  const more = rest.find((each) => typeof each === "object");
  const all = [...flags, join(folder, "core/cli/launch.mjs"), ...args];
  const { NODE_OPTIONS: _, ...env } = process.env;
  return spawn(process.execPath, all, { stdio: ["ignore", "pipe", "pipe"], env: { ...env, ...more } });
}

async function ended(child: Launched) {
  const [stdout, stderr, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "exit"),
  ]);
  return { stdout, stderr, code, signal };
}

describe("the launcher", () => {
  test("runs the built program, even if sources exist, and passes on arguments and the exit code", async () => {
    for (const clone of [{}, { [source]: "throw new Error()", "package-lock.json": "{}" }]) {
      const folder = await tree({ [built]: reporting, ...clone });
      const { stdout, stderr, code } = await ended(launch(folder, [], "run", "--x"));
      assert.deepEqual(JSON.parse(stdout), { args: ["run", "--x"], flags: [] });
      assert.deepEqual([stderr, code], ["", 7]);
    }
  });

  test("runs the sources with --conditions=source, and for a server that watches its modules", async () => {
    const folder = await tree({ [source]: `const a: number = 1; ${reporting}`, [built]: "throw new Error()" });
    for (const [flags, words] of [
      [["--conditions=source"], ["run"]],
      [[], ["run", "--watch"]],
      [[], ["--watch", "."]],
    ] as const) {
      const { stdout } = await ended(launch(folder, [...flags], ...words));
      assert.deepEqual(JSON.parse(stdout), { args: words, flags: ["--conditions=source"] });
    }
    const packaged = await tree({ [built]: reporting });
    const { stdout } = await ended(launch(packaged, ["--conditions=source"], "run", "--watch"));
    assert.deepEqual(JSON.parse(stdout).args, ["run", "--watch"]);
  });

  test("opens no debugger at SIGUSR1, whatever the command", async () => {
    const folder = await tree({
      [built]: `import { url } from "node:inspector"; console.log("runs"); setTimeout(() => console.log(url()), 300);`,
    });
    for (const args of [[], ["run", "."], ["node", "daemon"], ["status"]]) {
      const child = launch(folder, [], ...args);
      child.stdout.once("data", () => child.kill("SIGUSR1"));
      const { stdout, stderr, code, signal } = await ended(child);
      assert.deepEqual([stdout, stderr, code, signal], ["runs\nundefined\n", "", 0, null], args.join(" "));
    }
  });

  test("starts Node.js once, whatever the command", async () => {
    const folder = await tree({ [built]: "" });
    const starts = join(folder, "starts");
    const counting = `data:text/javascript,${encodeURIComponent(
      `import { appendFileSync } from "node:fs"; appendFileSync(${JSON.stringify(starts)}, "1");`,
    )}`;
    for (const args of [[], ["run", "./mod_hello.js"], ["node", "daemon"], ["status"]]) {
      await writeFile(starts, "");
      await ended(launch(folder, [`--import=${counting}`], ...args));
      assert.equal(await readFile(starts, "utf8"), "1", args.join(" "));
    }
  });

  test("prints the remedy on an old Node.js without a newer one next to it", async () => {
    for (const neighbours of [{}, nodePackage("22.0.0")]) {
      const folder = await tree({ [built]: reporting, ...neighbours });
      const { stdout, stderr, code } = await ended(launch(folder, ["--import", oldNode]));
      assert.deepEqual([stdout, code], ["", 1]);
      assert.match(stderr, /needs Node\.js 24\.9 or newer, and this is v20\.1\.0\. Install it from https:/);
    }
  });

  test("prints the remedy in a clone that is not built, on any Node.js", async () => {
    const folder = await tree({ [source]: reporting });
    const [old, own] = await Promise.all([ended(launch(folder, ["--import", oldNode])), ended(launch(folder, []))]);
    assert.deepEqual([old.code, own.code], [1, 1]);
    assert.match(old.stderr, /this is v20\.1\.0\. Run npm ci first, without --omit=dev\.\n$/);
    assert.match(own.stderr, /not built\. Run npm ci first, without --omit=dev\.\n$/);
  });

  for (const name of ["node", `node-${process.platform}-${process.arch}`]) {
    test(`on an old Node.js, runs the package ${name === "node" ? name : "for this machine"} next to it`, async () => {
      const folder = await tree({ [built]: reporting, ...nodePackage("24.9.0", name) });
      const { stdout, code } = await ended(launch(folder, ["--import", oldNode], "routes"));
      assert.deepEqual(JSON.parse(stdout), { args: ["routes"], flags: [] });
      assert.equal(code, 7);
    });
  }

  for (const [which, before] of [
    ["this Node", []],
    ["an old Node", ["--import", oldNode]],
    ["a Node with an open inspector", ["--inspect=127.0.0.1:0"]],
    ["an old Node with an open inspector", ["--import", oldNode, "--inspect=127.0.0.1:0"]],
  ] as const) {
    test(`opens an inspector in the process that runs the modules, on ${which}`, async () => {
      const main = `import inspector from "node:inspector"; console.log(JSON.stringify([inspector.url(), process.argv.slice(2)]));`;
      const folder = await tree({ [built]: main, ...nodePackage("24.9.0") });
      const options = before.includes("--inspect=127.0.0.1:0" as never) ? [] : ["--inspect=127.0.0.1:0"];
      const { stdout, code } = await ended(launch(folder, [...before], "run", ...options, "a.ts", "--", "--inspect"));
      const [url, args] = JSON.parse(stdout) as [string, string[]];
      assert.match(url, /^ws:\/\/127\.0\.0\.1:\d+\//);
      assert.deepEqual([args, code], [["run", "a.ts", "--", "--inspect"], 0]);
    });
  }

  test("warns of an inspector that others can reach, and accepts an IPv6 address without brackets", async () => {
    const folder = await tree({
      [built]: "",
      ...nodePackage("24.9.0"),
      "node_modules/node/bin/node": "#!/bin/sh\necho $@\n",
    });
    for (const [option, given, host] of [
      ["--inspect=::", "--inspect=[::]", "[::]"],
      ["--inspect-brk=0.0.0.0:9300", "--inspect-brk=0.0.0.0:9300", "0.0.0.0"],
      ["--inspect=[2001:db8::1]:9300", "--inspect=[2001:db8::1]:9300", "[2001:db8::1]"],
      ["--inspect=::1", "--inspect=[::1]"],
      ["--inspect=127.0.0.1:9300", "--inspect=127.0.0.1:9300"],
      ["--inspect=9300", "--inspect=9300"],
      ["--inspect", "--inspect"],
    ] as const) {
      const { stdout, stderr } = await ended(launch(folder, ["--import", oldNode], "run", option));
      assert.ok(stdout.split(" ").includes(given), stdout);
      const warning = `modhost: a debugger listens on ${host}: anybody who can reach it can run code as this user\n`;
      assert.equal(stderr, host === undefined ? "" : warning);
    }
  });

  test("passes on unchanged the words of commands that read their own words", async () => {
    const folder = await tree({ [built]: reporting });
    const { stdout } = await ended(launch(folder, [], "rpc", "add", "--inspect"));
    assert.deepEqual(JSON.parse(stdout), { args: ["rpc", "add", "--inspect"], flags: [] });
    const later = await ended(launch(folder, [], "--json", "rpc", "add", "./core", "--inspect"));
    assert.deepEqual(JSON.parse(later.stdout).args, ["--json", "rpc", "add", "./core", "--inspect"]);
  });

  const waiting = `setInterval(() => {}, 1000);
    process.on("SIGTERM", () => { console.log("asked"); process.exit(5); });
    console.log("ready");`;

  for (const [how, flags] of [
    ["itself", []],
    ["a child", ["--import", oldNode]],
  ] as const) {
    test(`forwards signals to the program run as ${how}, and ends as the program does`, async () => {
      const folder = await tree({ [built]: waiting, ...nodePackage("24.9.0") });
      const child = launch(folder, [...flags]);
      const end = ended(child);
      await once(child.stdout, "data");
      child.kill("SIGTERM");
      const { code } = await end;
      assert.equal(code, 5);

      const killing = { [built]: "process.kill(process.pid, 'SIGINT');", ...nodePackage("24.9.0") };
      const killed = launch(await tree(killing), [...flags]);
      assert.equal((await ended(killed)).signal, "SIGINT");
    });
  }

  test("ends the program in a child when the launcher is killed, without a message about the channel", async () => {
    const main = `console.log(JSON.stringify(Object.keys(process.env).filter((name) => name.startsWith("MODHOST_"))));
      setInterval(() => {}, 1000);`;
    const folder = await tree({ [built]: main, ...nodePackage("24.9.0") });
    const child = launch(folder, ["--import", oldNode]);
    const [said] = await once(child.stdout, "data");
    child.kill("SIGKILL");
    const own = JSON.parse(String(said)).filter((name: string) => process.env[name] === undefined);
    assert.deepEqual(own, []);
    // Both processes write to this stream. It closes with the last of them.
    await once(child.stdout, "close");
  });
});

describe("the cache of compiled code", { skip: process.getuid === undefined }, () => {
  const uid = process.getuid?.();
  const program = `
    import { getCompileCacheDir } from "node:module";
    console.log(getCompileCacheDir() ?? "nowhere");`;

  /** Returns the folder of the cache, given a folder for temporary files. */
  async function cacheFolder(temporary: string, more: NodeJS.ProcessEnv = {}): Promise<string> {
    const folder = await tree({ [built]: program });
    const env = { TMPDIR: temporary, NODE_COMPILE_CACHE: "", ...more };
    const { stdout, stderr, code } = await ended(launch(folder, [], env));
    assert.equal(code, 0, stderr);
    return stdout.trim();
  }

  test("is in a folder that belongs to the user", async () => {
    const temporary = await mkdtemp(join(root, "temporary-"));
    assert.equal(dirname(await cacheFolder(temporary)), join(temporary, `modhost-compiled-${uid}`));
    assert.equal((await stat(join(temporary, `modhost-compiled-${uid}`))).mode & 0o777, 0o700);
  });

  test("is in the folder that the environment names", async () => {
    const temporary = await mkdtemp(join(root, "temporary-"));
    const own = join(temporary, "own");
    assert.equal(dirname(await cacheFolder(temporary, { NODE_COMPILE_CACHE: own })), own);
  });

  test("does not exist if others may write to its folder, or may replace it", async () => {
    const open = await mkdtemp(join(root, "temporary-"));
    await mkdir(join(open, `modhost-compiled-${uid}`));
    await chmod(join(open, `modhost-compiled-${uid}`), 0o777);
    assert.equal(await cacheFolder(open), "nowhere");
    const linked = await mkdtemp(join(root, "temporary-"));
    await symlink(root, join(linked, `modhost-compiled-${uid}`));
    assert.equal(await cacheFolder(linked), "nowhere");
    const shared = await mkdtemp(join(root, "temporary-"));
    await chmod(shared, 0o777);
    assert.equal(await cacheFolder(shared), "nowhere");
    await chmod(shared, 0o1777);
    assert.equal(dirname(await cacheFolder(shared)), join(shared, `modhost-compiled-${uid}`));
  });
});
