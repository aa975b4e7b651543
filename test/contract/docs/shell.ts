/** Checks shell commands in pages: whether their programs, scripts, commands and options exist. */
import { execFileSync } from "node:child_process";
import { PassThrough } from "node:stream";
import { everyCommand, program } from "#core/cli/program.ts";

/**
 * Splits code into commands: removes comments and variables in front, joins continued lines, and
 * splits at `&&`.
 */
export function commandLines(code: string): string[] {
  return code
    .replaceAll(/ *\\\n\s*/g, " ")
    .split(/\n|&&/)
    .map((line) => line.replace(/(?:^|\s)#.*$/, "").trim())
    .map((line) => line.replace(/^(?:[A-Z_]+=\S* )+/, ""))
    .filter((line) => line !== "");
}

/** Returns what is wrong with a block. Empty if everything that it names exists. */
export async function shellFaults(code: string, scripts: readonly string[]): Promise<string[]> {
  execFileSync("sh", ["-n", "-c", code], { stdio: "pipe" });
  const faults: string[] = [];
  for (const line of commandLines(code)) {
    const fault = await faultOf(line, scripts);
    if (fault !== undefined) faults.push(`${line}: ${fault}`);
  }
  return faults;
}

const npmCommands = ["ci", "init", "install", "pack", "pkg", "publish", "start", "test", "version"];

async function faultOf(line: string, scripts: readonly string[]): Promise<string | undefined> {
  const [, launched] = /^(?:npx modhost|modhost|node \S*launch\.mjs|npm start --)(?:\s+(.*))?$/.exec(line) ?? [];
  if (launched !== undefined) return programFault(wordsOf(launched));
  const [, command, script] = /^npm (\S+)(?: (\S+))?/.exec(line) ?? [];
  if (command === "run") return scripts.includes(script ?? "") ? undefined : `the script ${script} does not exist`;
  if (command !== undefined)
    return npmCommands.includes(command) ? undefined : `the npm command ${command} is not allowed here`;
  return undefined;
}

/**
 * Runs the command with `--help`: it parses the command and its options as always, and does nothing
 * else.
 */
async function programFault(words: readonly string[]): Promise<string | undefined> {
  const isNamed = (await everyCommand()).some(({ name }) => words.includes(name));
  const stdout = new PassThrough().resume() as unknown as NodeJS.WriteStream;
  const stderr = new PassThrough() as unknown as NodeJS.WriteStream & PassThrough;
  const argv = [...(isNamed ? [] : ["run"]), ...words, "--help"];
  const code = await program(argv, { stdin: process.stdin, stdout, stderr, cwd: process.cwd(), env: {} });
  return code === 0 ? undefined : String(stderr.read(stderr.readableLength)).trim();
}

function wordsOf(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? "",
  );
}

/** A line that sends a request to the host with curl, and the comment about the response. */
export interface Curl {
  readonly line: string;
  readonly path: string;
  readonly comment: string;
}

export function curlLines(code: string): Curl[] {
  return code
    .replaceAll(/ *\\\n\s*/g, " ")
    .split("\n")
    .flatMap((text) => {
      const [, line = "", comment = ""] = /^(curl .*?)(?:\s+# *(.*))?$/.exec(text.trim()) ?? [];
      const [, path] = /https?:\/\/localhost:528[01](\/[^\s"']*)?/.exec(line) ?? [];
      return path === undefined ? [] : [{ line, path, comment: comment.trim() }];
    });
}
