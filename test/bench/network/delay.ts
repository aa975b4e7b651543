/** A long line: data that goes through it arrives later, in either direction. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** The line is a process of its own, so that work of the measuring process does not delay it. */
export class LongLine implements AsyncDisposable {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
  }

  /** Opens a line to a port of the loopback. `milliseconds`: delay in each direction. */
  static async open(to: number, milliseconds: number): Promise<LongLine> {
    const program = fileURLToPath(new URL("line_process.ts", import.meta.url));
    const child = fork(program, [String(to), String(milliseconds)], { execArgv: [] });
    const [port] = (await once(child, "message")) as [number];
    return new LongLine(child, port);
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#child, "exit");
    this.#child.disconnect();
    await exited;
  }
}
