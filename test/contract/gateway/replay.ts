/** Plays the recorded requests against a gateway, and returns the results. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const fixturesFolder = fileURLToPath(new URL("../../fixtures/gateway/", import.meta.url));

interface Fixtures {
  readonly cids: Readonly<Record<string, string>>;
  readonly keys: Readonly<Record<string, string>>;
  /** Records of names in base64, by the name of the key. */
  readonly records: Readonly<Record<string, string>>;
  /** The path to which each name resolves. */
  readonly names: Readonly<Record<string, string>>;
  /** `Gateway.PublicGateways` that the server must have. */
  readonly publicGateways: Readonly<Record<string, unknown>>;
  /** Lines of the denylist that the server must have. */
  readonly denylist: readonly string[];
}

export const fixtures = JSON.parse(readFileSync(join(fixturesFolder, "fixtures.json"), "utf8")) as Fixtures;

/** Replaces `{name}` by the identifiers of the fixtures. */
export function filled(text: string): string {
  return text.replace(/\{(\w+)\}/g, (all, name: string) => fixtures.cids[name] ?? fixtures.keys[name] ?? all);
}

/** Returns the value that `IPFS_NS_MAP` must have when the node is opened. */
export function nameMap(): string {
  return Object.entries(fixtures.names)
    .map(([name, path]) => `${name}:${filled(path)}`)
    .join(",");
}

export interface Played {
  /** In the form `topic/id`. */
  readonly id: string;
  /** `quirk`: the response differs, but no rule requires the recorded one. */
  readonly state: "ok" | "quirk" | "differs";
  readonly differences: readonly string[];
}

/**
 * Sends requests to a gateway that has the fixtures. `only`: a regular expression for `topic/id`.
 */
export async function replay(url: string, only = "."): Promise<readonly Played[]> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-gateway-replay-"));
  try {
    const file = join(folder, "result.json");
    const given = ["replay", "--gateway", url, "--only", only, "--json", file];
    const child = spawn(process.execPath, [join(fixturesFolder, "gateway.mjs"), ...given], { stdio: "ignore" });
    const [code] = (await once(child, "close")) as [number | null];
    if (code !== 0 && code !== 1) throw new Error(`The replayer ended with ${code}`);
    return (JSON.parse(await readFile(file, "utf8")) as { results: readonly Played[] }).results;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
