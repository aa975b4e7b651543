import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { program } from "#core/cli/program.ts";

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Given {
  readonly stdin?: string;
  readonly terminal?: boolean;
  readonly env?: NodeJS.ProcessEnv;
  readonly address?: string | undefined;
  /** A folder below the temporary one. */
  readonly cwd?: string;
}

/** Runs `modhost rpc` in this process and in a folder. */
export function called(folder: string, words: readonly string[], given: Given): Promise<Ran> {
  const { address } = given;
  return ran(folder, ["rpc", ...(address === undefined ? [] : [`--api=${address}`]), ...words], given);
}

/** Runs `modhost` in this process and in a folder. `terminal`: the standard error is a terminal. */
export async function ran(
  folder: string,
  words: readonly string[],
  { stdin, terminal = false, env = {}, cwd = "." }: Omit<Given, "address"> = {},
): Promise<Ran> {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const texts = [stdout, stderr].map((stream) => {
    const pieces: Buffer[] = [];
    stream.on("data", (piece: Buffer) => pieces.push(piece));
    return () => Buffer.concat(pieces).toString("utf8");
  });
  const code = await program(words, {
    stdin: Object.assign(Readable.from(stdin === undefined ? [] : [Buffer.from(stdin)]), {
      isTTY: stdin === undefined,
    }),
    stdout: stdout as unknown as NodeJS.WriteStream,
    stderr: Object.assign(stderr, { isTTY: terminal, columns: 80 }) as unknown as NodeJS.WriteStream,
    cwd: join(folder, cwd),
    env,
  });
  return { code, stdout: texts[0]!(), stderr: texts[1]!() };
}
