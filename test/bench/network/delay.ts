/** A line that is long: what goes through it comes out later, in either direction. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** A process of its own: what the measuring process does meanwhile holds nothing up. */
export class LongLine implements AsyncDisposable {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
  }

  /** To a port of loopback; `milliseconds` each way. */
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
