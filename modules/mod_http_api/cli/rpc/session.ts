/** One call from the command line: its server, its options, and where its output goes. */
import { resolve } from "node:path";
import type { Readable } from "node:stream";
import { type CommandContext, Progress, UsageError } from "../../../../core/cli/index.ts";
import { exchange, failureText, type RpcResponse, type Upload } from "./exchange.ts";
import { type Call, isFlagSet, targetOf } from "./parse.ts";
import { openPlainFile } from "./plain_file.ts";
import type { Server } from "./server.ts";
import { planUpload, type UploadOptions } from "./upload.ts";

/** `size` is undefined if the length of the upload is unknown. */
type Sized = Upload & { readonly size: number | undefined };

export class Session {
  readonly server: Server;
  readonly context: CommandContext;

  constructor(server: Server, context: CommandContext) {
    this.server = server;
    this.context = context;
  }

  /**
   * Sends a call. `size` of the result is that of the uploaded files. Shows the progress of the
   * upload until the response begins, unless the caller shows its own (`showsOwnProgress`).
   *
   * @throws Error, or UsageError if the server refuses the call /
   */
  async send(
    call: Call,
    { showsOwnProgress = false } = {},
  ): Promise<RpcResponse & { readonly size: number | undefined }> {
    const upload = await this.#upload(call);
    const target = targetOf(call);
    const isQuiet = showsOwnProgress || ["quiet", "silent"].some((name) => isFlagSet(call, name));
    const response =
      upload === undefined
        ? await exchange(this.server, "POST", target)
        : await this.#uploading(upload, isQuiet, (upload) => exchange(this.server, "POST", target, { upload }));
    if (response.status === 200) return { ...response, size: upload?.size };
    const reason = await failureText(response);
    if (response.status === 400) throw new UsageError(reason);
    throw new Error(reason === "" ? `The server responded with ${response.status}` : reason);
  }

  /** Returns a progress display for streamed bytes; undefined if stderr is not a terminal. */
  progress(total: number | undefined): Progress | undefined {
    const { stderr } = this.context;
    return stderr.isTTY === true ? new Progress(stderr, total) : undefined;
  }

  /** Resolves when the content is written. */
  write(content: string | Uint8Array): Promise<void> {
    const { stdout } = this.context;
    return new Promise((done, failed) => stdout.write(content, (error) => (error == null ? done() : failed(error))));
  }

  async #uploading(
    upload: Sized,
    isQuiet: boolean,
    send: (upload: Upload) => Promise<RpcResponse>,
  ): Promise<RpcResponse> {
    const { content, size } = upload;
    // Text that a user types needs no progress display.
    const isTyped = size === undefined && this.context.stdin.isTTY === true;
    let progress = isQuiet || isTyped ? undefined : this.progress(size);
    if (progress === undefined) return send(upload);
    const counted = async function* () {
      // Only the bytes of the files should count; the multipart framing around them is ignored.
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

  /** Returns the options that only the sender can apply. */
  async #uploadOptions(call: Call): Promise<UploadOptions> {
    const { command, options } = call;
    const rules = options.get("ignore-rules-path")?.[0];
    const ruled = rules === undefined ? "" : await textOf(resolve(this.context.cwd, rules), rules);
    const lines = ruled.split(/\r?\n/).filter((line) => line.trim() !== "" && !line.startsWith("#"));
    return {
      title: command.path.replaceAll("/", " "),
      recursive: isFlagSet(call, "recursive"),
      hidden: isFlagSet(call, "hidden"),
      follow: isFlagSet(call, "dereference-symlinks") ? "all" : isFlagSet(call, "dereference-args") ? "named" : "none",
      ignore: [...(options.get("ignore") ?? []), ...lines],
      facts: isFlagSet(call, "preserve-mode") || isFlagSet(call, "preserve-mtime"),
      stdinName: options.get("stdin-name")?.[0] ?? "",
    };
  }
}

async function textOf(path: string, shown: string): Promise<string> {
  await using file = await openPlainFile(path, shown);
  return file.readFile("utf8");
}

/** Throws the error that the server reported after the values, if there is one. @throws Error */
export function checkEnd({ late }: RpcResponse): void {
  const failure = late();
  if (failure !== undefined) throw new Error(failure);
}

/** Returns the same call with defaults for options that were not given. */
export function withOptions(call: Call, preset: Readonly<Record<string, string>>): Call {
  const missing = Object.entries(preset).filter(([name]) => !call.options.has(name));
  return { ...call, options: new Map([...call.options, ...missing.map(([name, value]) => [name, [value]] as const)]) };
}
