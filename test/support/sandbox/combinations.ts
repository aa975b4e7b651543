/** Starts hostile programs as different users and with different layers of the sandbox. */
import { execFile, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { sandboxLayers, sandboxUnavailable } from "#core/sandbox/index.ts";
import { sourceFlags } from "#test/support/launchers.ts";
import type { Report, Setting } from "./host.ts";
import type { HostReport, HostSetting } from "./module_host.ts";

/**
 * The user of the host: this one, an ordinary one, or this one where no namespaces can be made, as
 * in many containers.
 */
export type Who = "this" | "nobody" | "bare";

const isRoot = process.getuid?.() === 0;
const NOBODY = 65534;
const programOf = (name: string) => fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
const words = [process.execPath, "--no-warnings", ...sourceFlags] as const;

const bare = [
  "unshare",
  "--user",
  "--map-root-user",
  "sh",
  "-c",
  'for kind in user mnt pid net; do echo 0 > /proc/sys/user/max_"$kind"_namespaces || exit 1; done; exec "$0" "$@"',
] as const;

async function run<T>(program: string, setting: object, who: Who): Promise<T> {
  const [file = "", ...args] = [...(who === "bare" ? bare : []), ...words, program];
  const user = who === "nobody" && isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  const { stdout } = await promisify(execFile)(file, [...args, JSON.stringify(setting)], {
    ...user,
    cwd: "/",
    env: { PATH: process.env.PATH },
    maxBuffer: 10e6,
  });
  return JSON.parse(stdout) as T;
}

/** Runs the program of `hostile.mjs` in a sandbox. */
export const runHostile = (setting: Setting, who: Who = "this"): Promise<Report> =>
  run<Report>(programOf("host"), setting, who);

/** Runs a server with the hostile modules. */
export const runModules = (setting: HostSetting, who: Who = "this"): Promise<HostReport> =>
  run<HostReport>(programOf("module_host"), setting, who);

const layer = (name: string) => sandboxLayers().find((each) => each.name === name);

/** Why a layer does not work here; false if it does. */
export const missing = (name: string): string | false =>
  layer(name)?.works ? false : `${name}: ${layer(name)?.detail}`;

/** Why there is no sandbox here; false if there is one. */
export const unavailable: string | false = sandboxUnavailable() ?? false;

export const noNative: string | false = process.arch !== "x64" && "the attempts know the system calls of x86-64 only";

/** Why the programs cannot run as an ordinary user; false if they can. */
export const noNobody: string | false = unavailable === false && withoutNobody();

/** Why this system cannot forbid namespaces to a program; false if it can. */
export const noBare: string | false =
  spawnSync(bare[0], [...bare.slice(1), "true"], { cwd: "/" }).status !== 0 &&
  "unshare cannot make a user namespace here";

function withoutNobody(): string | false {
  if (!isRoot) return false;
  const read = `require("fs").readFileSync(${JSON.stringify(programOf("host"))})`;
  const { status } = spawnSync(words[0], ["--eval", read], { uid: NOBODY, gid: NOBODY, cwd: "/" });
  return status !== 0 && "an ordinary user cannot read Node or the source tree here";
}

/** Returns a sentence with the layers of this machine. */
export function layersText(): string {
  const works = sandboxLayers().filter((each) => each.works);
  const others = sandboxLayers().filter((each) => !each.works);
  const without = others.map(({ name, detail }) => `; without ${name}: ${detail.replace(/\.$/, "")}`).join("");
  return `Escapes are tried with the layers ${works.map(({ name }) => name).join(", ")}${without}.`;
}

/** Returns the attempts that got something, and the legitimate uses that did not. */
export function wrong({ outcomes, allowed }: Report): readonly string[] {
  return Object.entries(outcomes)
    .filter(([name, outcome]) => outcome.startsWith("got") !== allowed.includes(name))
    .map(([name, outcome]) => `${name}: ${outcome}`);
}
