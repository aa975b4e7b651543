/**
 * The host survives every mistake of a module, serves the other modules, and names the module in
 * the log.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { eventually } from "#test/support/eventually.ts";
import { ends, isolatedModule, moduleAt, moduleDoing, type Place, places, ways } from "./careless_modules.ts";
import { Program } from "./spawned.ts";

const sound = `export default (module) => module.provides("http", { route: { GET: () => "sound" } });`;

/**
 * Acts that are tried in the host's thread only. In a worker they do nothing, or disturb the next
 * act in the same worker.
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
  describe(`a host that runs ${words.join(" ") || "plainly"} goes on next to a module`, () => {
    let program: Program;
    let base = "";
    let kill: (signal: NodeJS.Signals) => boolean;
    let ended: Promise<{ readonly code: number | null; readonly stderr: string }>;

    before(async () => {
      const files: Record<string, string> = { "mod_sound.js": sound };
      const all = { ...ways, ...ends };
      for (const name of chosen(all)) files[`mod_${name}.mjs`] = moduleDoing(all[name]);
      for (const name of chosen(places)) files[`mod_${name}.mjs`] = moduleAt(name);
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
      test(`of which ${name.replaceAll("_", " ")} fails, and names it`, async () => {
        await (await fetch(`${base}${name}/do`)).text();
        await eventually(`the log names ${name}`, isNamed(name), patience);
        await isServed();
      });
    }
    for (const name of chosen(places)) {
      test(`that begins in ${name.replaceAll("_", " ")} what fails, and names it`, async () => {
        const { path = `/${name}/do`, method = "GET" }: Place = places[name];
        const body = method === "POST" ? { body: "text" } : {};
        await fetch(new URL(path, base), { method, ...body }).then(
          (answer) => answer.text(),
          () => undefined,
        );
        await eventually(`the log names ${name}`, isNamed(name), patience);
        await isServed();
      });
    }
    for (const name of isWatched ? Object.keys({ ...ways, ...ends }).filter((name) => !alone.has(name)) : []) {
      test(`in a worker of which ${name.replaceAll("_", " ")} fails`, async () => {
        const known = (await lines()).length;
        const act = () =>
          fetch(`${base}apart/do?${name}`).then(
            async (answer) => (await answer.text()) && answer.status,
            () => 0,
          );
        let status = await act();
        const isTold = async () => {
          // The worker had not ended yet from what came before.
          if (status === 503 && (await program.call(["reload", "apart"])).code === 0) status = await act();
          return (await lines()).slice(known).some(({ module }) => module === "apart");
        };
        await eventually(`the log names the module for ${name}`, isTold, patience);
        if ((await fetch(`${base}apart`)).status !== 200)
          assert.equal((await program.call(["reload", "apart"])).code, 0);
        await isServed();
      });
    }
    test("and SIGUSR1, which would open a debugger, does nothing", async () => {
      kill("SIGUSR1");
      await isServed();
    });
    test("and only the modules that failed are quarantined", async () => {
      const out = (await lines()).filter(({ msg }) => /^is in quarantine/.test(msg)).map(({ module }) => module);
      assert.equal(out.includes("sound"), false);
    });
  });
}
