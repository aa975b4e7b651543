import { execFile } from "node:child_process";

/** Compiles a file without running it; whatever is thrown is printed with its line. */
const compile = `
  const file = process.argv[1];
  const text = require("node:fs").readFileSync(file, "utf8");
  const script = file.endsWith(".ts") ? require("node:module").stripTypeScriptTypes(text) : text;
  new (require("node:vm").SourceTextModule)(script, { identifier: file });
`;

/**
 * The line of a syntax error in an ES module: its error carries none when it is caught, only when it ends a process.
 * Undefined when the file compiles, so that the error is of another one.
 */
export async function syntaxErrorLine(file: string): Promise<string | undefined> {
  const flags = ["--no-warnings", "--experimental-vm-modules", "--eval", compile, file];
  const { promise: printed, resolve } = Promise.withResolvers<string>();
  execFile(process.execPath, flags, { timeout: 5000, env: {} }, (_failed, _stdout, stderr) => resolve(stderr));
  const [, where, line] = /^(.*):(\d+)$/m.exec(await printed) ?? [];
  return where === file || where === "" ? line : undefined;
}
