/** One call from the command line: what it is sent with, and where its outcome goes. */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Readable } from "node:stream";
import { type CommandContext, UsageError } from "../command.ts";
import { type Answered, exchange, failureText, type Upload } from "./exchange.ts";
import { type Call, isOn, targetOf } from "./parse.ts";
import { Progress } from "./progress.ts";
import type { Server } from "./server.ts";
import { planUpload, type UploadOptions } from "./upload.ts";

/** Undefined: it is not known how much comes. */
type Sized = Upload & { readonly size: number | undefined };

export class Session {
  readonly server: Server;
  readonly context: CommandContext;

  constructor(server: Server, context: CommandContext) {
    this.server = server;
    this.context = context;
  }

  /**
   * Sends a call; `size` is that of the files it takes along. How much of them is sent is shown until the answer begins,
   * unless the caller tells it himself (`isTold`). @throws Error, UsageError for a refusal of the call
   */
  async send(call: Call, { isTold = false } = {}): Promise<Answered & { readonly size: number | undefined }> {
    const upload = await this.#upload(call);
    const target = targetOf(call);
    const isQuiet = isTold || ["quiet", "silent"].some((name) => isOn(call, name));
    const answer =
      upload === undefined
        ? await exchange(this.server, "POST", target)
        : await this.#uploading(upload, isQuiet, (upload) => exchange(this.server, "POST", target, { upload }));
    if (answer.status === 200) return { ...answer, size: upload?.size };
    const reason = await failureText(answer);
    if (answer.status === 400) throw new UsageError(reason);
    throw new Error(reason === "" ? `The server answered ${answer.status}` : reason);
  }

  /** Of bytes that flow, when there is somebody to look at it. */
  progress(total: number | undefined): Progress | undefined {
    const { stderr } = this.context;
    return stderr.isTTY === true ? new Progress(stderr, total) : undefined;
  }

  /** Resolves when it is written. */
  write(content: string | Uint8Array): Promise<void> {
    const { stdout } = this.context;
    return new Promise((done, failed) => stdout.write(content, (error) => (error == null ? done() : failed(error))));
  }

  async #uploading(upload: Sized, isQuiet: boolean, send: (upload: Upload) => Promise<Answered>): Promise<Answered> {
    const { content, size } = upload;
    // What somebody types is no progress to show him.
    const isTyped = size === undefined && this.context.stdin.isTTY === true;
    let progress = isQuiet || isTyped ? undefined : this.progress(size);
    if (progress === undefined) return send(upload);
    const counted = async function* () {
      // The frames around the files count for nothing.
      let sent = 0;
      for await (const piece of content) {
        yield piece;
        sent += piece.length;
        progress?.show(Math.min(sent, size ?? sent));
      }
    };
    try {
      return await send({ ...upload, content: counted() });
    } finally {
      progress.clear();
      progress = undefined;
    }
  }

  async #upload(call: Call) {
    const { stdin, cwd } = this.context;
    const { command, files, arguments: values } = call;
    const { file, arguments: declared } = command;
    if (file !== undefined) {
      const none = files.length === 0;
      if (none && file.required !== true && stdin.isTTY === true) return undefined;
      return planUpload(none ? ["-"] : files, cwd, stdin as Readable, await this.#uploadOptions(call));
    }
    const wanted = declared.filter(({ required }) => required === true).length;
    const isShort = values.length < Math.max(wanted, 1) && declared.at(-1)?.stdin !== undefined;
    if (!isShort || values.length < declared.length - 1 || stdin.isTTY === true) return undefined;
    return planUpload(["-"], cwd, stdin as Readable, await this.#uploadOptions(call));
  }

  /** The options that only the sender can follow. */
  async #uploadOptions(call: Call): Promise<UploadOptions> {
    const { command, options } = call;
    const rules = options.get("ignore-rules-path")?.[0];
    const ruled = rules === undefined ? "" : await readFile(resolve(this.context.cwd, rules), "utf8");
    const lines = ruled.split(/\r?\n/).filter((line) => line.trim() !== "" && !line.startsWith("#"));
    return {
      title: command.path.replaceAll("/", " "),
      recursive: isOn(call, "recursive"),
      hidden: isOn(call, "hidden"),
      follow: isOn(call, "dereference-symlinks") ? "all" : isOn(call, "dereference-args") ? "named" : "none",
      ignore: [...(options.get("ignore") ?? []), ...lines],
      stdinName: options.get("stdin-name")?.[0] ?? "",
    };
  }
}

/** What came after the values, when it is a failure. @throws Error */
export function checkEnd({ late }: Answered): void {
  const failure = late();
  if (failure !== undefined) throw new Error(failure);
}

/** The same call with options that were not given. */
export function withOptions(call: Call, preset: Readonly<Record<string, string>>): Call {
  const missing = Object.entries(preset).filter(([name]) => !call.options.has(name));
  return { ...call, options: new Map([...call.options, ...missing.map(([name, value]) => [name, [value]] as const)]) };
}
