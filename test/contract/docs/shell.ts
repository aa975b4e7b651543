/**
 * Lines of a shell as pages show them: whether the programs, scripts, commands and options in them
 * exist.
 */
import { execFileSync } from "node:child_process";
import { PassThrough } from "node:stream";
import { everyCommand, program } from "#core/cli/program.ts";

/**
 * One command each: comments and variables before it taken away, `&&` and lines that go on taken
 * apart.
 */
export function commandLines(code: string): string[] {
  return code
    .replaceAll(/ *\\\n\s*/g, " ")
    .split(/\n|&&/)
    .map((line) => line.replace(/(?:^|\s)#.*$/, "").trim())
    .map((line) => line.replace(/^(?:[A-Z_]+=\S* )+/, ""))
    .filter((line) => line !== "");
}

/** What is wrong with a block; nothing when all that it names exists. */
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
  if (command === "run") return scripts.includes(script ?? "") ? undefined : `there is no script ${script}`;
  if (command !== undefined) return npmCommands.includes(command) ? undefined : `npm has no command ${command} here`;
  return undefined;
}

/**
 * Asks the program for the help of what would run: it reads command and options as always, and does
 * nothing.
 */
async function programFault(words: readonly string[]): Promise<string | undefined> {
  const isNamed = (await everyCommand()).some(({ name }) => words.includes(name));
  const stdout = new PassThrough().resume() as unknown as NodeJS.WriteStream;
  const stderr = new PassThrough() as unknown as NodeJS.WriteStream & PassThrough;
  const argv = [...(isNamed ? [] : ["run"]), ...words, "--help"];
  const code = await program(argv, { stdin: process.stdin, stdout, stderr, cwd: process.cwd(), env: {} });
  return code === 0 ? undefined : String(stderr.read()).trim();
}

function wordsOf(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? "",
  );
}

/** A line that asks the host itself by curl, and what its comment says of the answer. */
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
