/**
 * The host survives every mistake of a module, serves the other modules, and names the module in
 * the log.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { eventually } from "#test/support/eventually.ts";
import { type CodeContext, contexts, ends, isolatedModule, moduleAt, moduleDoing, ways } from "./careless_modules.ts";
import { Program } from "./spawned.ts";

const sound = `export default (module) => module.provides("http", { route: { GET: () => "sound" } });`;

/**
 * Cases that are tried in the host's thread only. In a worker they do nothing, or disturb the next
 * case in the same worker.
 */
const alone: ReadonlySet<string> = new Set(["emits_a_signal", "takes_errors", "is_replaced", "exits_on_errors"]);

const patience = { every: 20, within: Number(process.env.PATIENCE ?? 120_000) };

interface Line {
  readonly module?: string;
  readonly level: string;
  readonly msg: string;
}

/** The cases for a watched host, which differs only in loading modules. */
const watched: ReadonlySet<string> = new Set(["a_socket", "a_rejection", "removes_all_listeners", "its_function"]);

for (const words of [[], ["--watch"]]) {
  const isWatched = words.length > 0;
  const chosen = <T extends object>(all: T) =>
    Object.keys(all).filter((name) => !isWatched || watched.has(name)) as (keyof T & string)[];
  describe(`a host started with ${words.join(" ") || "no option"} keeps serving`, () => {
    let program: Program;
    let base = "";
    let kill: (signal: NodeJS.Signals) => boolean;
    let ended: Promise<{ readonly code: number | null; readonly stderr: string }>;

    before(async () => {
      const files: Record<string, string> = { "mod_sound.js": sound };
      const all = { ...ways, ...ends };
      for (const name of chosen(all)) files[`mod_${name}.mjs`] = moduleDoing(all[name]);
      for (const name of chosen(contexts)) files[`mod_${name}.mjs`] = moduleAt(name);
      if (isWatched) files["mod_apart.mjs"] = isolatedModule();
      program = await Program.in(files);
      const served = await program.serve(["run", ...words, ...Object.keys(files)].slice(1), {
        MODHOST_QUARANTINE_PAUSE: "600",
        MODHOST_QUARANTINE_FAILURES: "1000",
        MODHOST_MODULES_ENABLED: "http,http_admin,http_health",
        MODHOST_MODULES_ISOLATED: "apart",
        MODHOST_LOG_FILE: join(program.folder, "log"),
      });
      ({ kill, ended } = served);
      base = served.started.apps.find(({ name }) => name === "sound")?.urls[0]?.replace(/sound\/?$/, "") ?? "";
    });

    after(async () => {
      kill("SIGTERM");
      const { code, stderr } = await ended;
      assert.equal(code, 0);
      assert.doesNotMatch(stderr, /Debugger/);
      await program[Symbol.asyncDispose]();
    });

    const lines = async (): Promise<Line[]> => {
      const text = await readFile(join(program.folder, "log"), "utf8");
      return text.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as Line] : []));
    };
    const isNamed = (name: string) => async () =>
      (await lines()).some(
        ({ module, level, msg }) => module === name && level === "error" && /failed|refused/.test(msg),
      );

    const isServed = async () => assert.equal(await (await fetch(`${base}sound`)).text(), "sound");

    for (const name of chosen({ ...ways, ...ends })) {
      test(`although a module fails (${name.replaceAll("_", " ")}), and logs the name of the module`, async () => {
        await (await fetch(`${base}${name}/do`)).text();
        await eventually(`the log names ${name}`, isNamed(name), patience);
        await isServed();
      });
    }
    for (const name of chosen(contexts)) {
      test(`although a module starts work that fails (in ${name.replaceAll("_", " ")}), and logs the name of the module`, async () => {
        const { path = `/${name}/do`, method = "GET" }: CodeContext = contexts[name];
        const body = method === "POST" ? { body: "text" } : {};
        await fetch(new URL(path, base), { method, ...body }).then(
          (response) => response.text(),
          () => undefined,
        );
        await eventually(`the log names ${name}`, isNamed(name), patience);
        await isServed();
      });
    }
    for (const name of isWatched ? Object.keys({ ...ways, ...ends }).filter((name) => !alone.has(name)) : []) {
      test(`although a module in a worker fails (${name.replaceAll("_", " ")})`, async () => {
        const known = (await lines()).length;
        const act = () =>
          fetch(`${base}apart/do?${name}`).then(
            async (response) => (await response.text()) && response.status,
            () => 0,
          );
        let status = await act();
        const isLogged = async () => {
          // The worker was still ending because of the previous case.
          if (status === 503 && (await program.call(["reload", "apart"])).code === 0) status = await act();
          return (await lines()).slice(known).some(({ module }) => module === "apart");
        };
        await eventually(`the log names the module for ${name}`, isLogged, patience);
        if ((await fetch(`${base}apart`)).status !== 200)
          assert.equal((await program.call(["reload", "apart"])).code, 0);
        await isServed();
      });
    }
    test("and ignores SIGUSR1, which would open a debugger", async () => {
      kill("SIGUSR1");
      await isServed();
    });
    test("and quarantines only the modules that failed", async () => {
      const out = (await lines()).filter(({ msg }) => /^is in quarantine/.test(msg)).map(({ module }) => module);
      assert.equal(out.includes("sound"), false);
    });
  });
}
