/** Plays the recorded conversations against two servers, and returns the result of every step. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LevelName } from "#modules/mod_http_api/rpc/levels.ts";

const replayer = fileURLToPath(new URL("../../fixtures/transcripts/transcript.mjs", import.meta.url));

export type Aspect = "status" | "head" | "body" | "trailer" | "cut";

export interface ReplayedDifference {
  readonly aspect: Aspect;
  /** Position in the response. */
  readonly at: string;
  readonly got: unknown;
  readonly want: unknown;
}

/** A step as the replayer reports it. */
export interface ReplayedStep {
  readonly topic: string;
  readonly scenario: string;
  /** Position in the scenario, from 1. */
  readonly step: number;
  readonly call: string;
  readonly ok: boolean;
  /** The reason why a server may differ here. */
  readonly quirk?: string;
  readonly differences: readonly ReplayedDifference[];
}

export interface Skipped {
  readonly topic: string;
  readonly scenario: string;
  readonly skipped: string;
}

/** URLs of two new servers, or a command line that starts one, with `{port}` and `{dir}`. */
export type ReplayTarget = { readonly urls: readonly [string, string] } | { readonly spawn: string };

/**
 * `only`: a regular expression for `topic/scenario`.
 * @throws Error if nothing could be played
 */
export async function replay(
  target: ReplayTarget,
  only: string | undefined,
  level: LevelName = "0.9",
): Promise<readonly (ReplayedStep | Skipped)[]> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-transcripts-"));
  const report = join(folder, "report.json");
  const servers =
    "urls" in target ? ["--api", target.urls[0], "--api2", target.urls[1], "--shutdown"] : ["--spawn", target.spawn];
  const filter = [...(only === undefined ? [] : ["--only", only]), ...(level === "0.9" ? [] : ["--level", level])];
  try {
    const child = spawn(process.execPath, [replayer, "replay", ...servers, ...filter, "--strict", "--json", report], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    const complaints: string[] = [];
    child.stderr.setEncoding("utf8").on("data", (text: string) => complaints.push(text));
    const [code] = await once(child, "close");
    if (code !== 0 && code !== 1) throw new Error(`The replayer ended with ${code}: ${complaints.join("")}`);
    return JSON.parse(await readFile(report, "utf8"));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
