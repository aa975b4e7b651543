import { execFile } from "node:child_process";

/** Compiles a file without running it; an error is printed with its line. */
const compile = `
  const file = process.argv[1];
  const text = require("node:fs").readFileSync(file, "utf8");
  const script = file.endsWith(".ts") ? require("node:module").stripTypeScriptTypes(text) : text;
  new (require("node:vm").SourceTextModule)(script, { identifier: file });
`;

export interface SyntaxFault {
  readonly line: string;
  /** Names the unsupported syntax, where V8 only reports an unexpected token. */
  readonly what: string | undefined;
}

/**
 * Returns the line of a syntax error in an ES module, by compiling the file in another process: the
 * error contains its line only when it ends a process. Undefined if the file compiles, so the error
 * is in another file.
 */
export async function syntaxFault(file: string): Promise<SyntaxFault | undefined> {
  const flags = ["--no-warnings", "--experimental-vm-modules", "--eval", compile, file];
  const { promise: printed, resolve } = Promise.withResolvers<string>();
  execFile(process.execPath, flags, { timeout: 5000, env: {} }, (_failed, _stdout, stderr) => resolve(stderr));
  // The output has the position, the source line, and a caret below the token.
  const [, where, line, source = "", before = ""] = /^(.*):(\d+)$(?:\n(.*)\n( *)\^)?/m.exec(await printed) ?? [];
  if (line === undefined || (where !== file && where !== "")) return undefined;
  const what =
    source[before.length] === "@" ? "decorators are not supported, since Node.js does not run them" : undefined;
  return { line, what };
}
