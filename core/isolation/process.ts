/**
 * Runs a sandboxed module in a process. Its code may be hostile: the host limits the size and the
 * rate of its messages, and ends it at the first one that is malformed.
 */
import { closeSync, rmSync } from "node:fs";
import { connect } from "node:net";
import type { Duplex, Readable } from "node:stream";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { dataFolderOf } from "../module/rights.ts";
import { limitsOf, type ModuleLimits } from "../permissions/index.ts";
import { Channel, type MessageEndpoint } from "../relay/channel.ts";
import { deserializeForeignError } from "../relay/errors.ts";
import { FrameDecoder, FrameFault, frameOf } from "../relay/frames.ts";
import { innerPath } from "../relay/inner_request.ts";
import { untrustedFault } from "../relay/untrusted_value.ts";
import { launchAudited, launchSandboxed, moduleProcess, type Sandboxed } from "../sandbox/index.ts";
import { openCompiledCode } from "../util/compiled_code.ts";
import { reasonOf } from "../util/errors.ts";
import { sizeText } from "../util/size.ts";
import { layerStates } from "./layer_states.ts";
import { type LimitedProcess, LimitWatch } from "./limits/limit_watch.ts";
import type { LineAllowance } from "./limits/line_allowance.ts";
import { subrequestLimit } from "./limits/subrequests.ts";
import { TimeShare } from "./limits/time_share.ts";
import type { SandboxStart, SourceFile } from "./messages.ts";
import { Broker } from "./network/broker.ts";
import { SandboxServers } from "./network/sandbox_servers.ts";
import { makePolicy, nodeOptions, temporaryFolder } from "./policy.ts";
import { ModuleRunner } from "./runner.ts";
import { SandboxOutput } from "./sandbox_output.ts";
import { heapOf, type IsolatedRights, type IsolationDeps } from "./task.ts";

const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
/** Resolved like an import, so that a hook of tests can name the built program. */
const program = fileURLToPath(import.meta.resolve(new URL(`./process_entry.${extension}`, import.meta.url).href));

/** Maximum number of bytes that wait until the process reads them. */
const MAX_UNREAD = 64 * 2 ** 20;

/** Milliseconds for which messages are handled before other work of the host gets its turn. */
const SLICE_MS = 1;

/**
 * Milliseconds to wait for the last messages and output of a process that has ended. Its children
 * may keep the descriptors open.
 */
const LAST_MS = 1000;
/** Milliseconds between two looks at them, and the maximum time for handling them. */
const LOOK_MS = 5;
const MAX_LAST_MS = 30_000;

export class SandboxProcess extends ModuleRunner {
  readonly channel: Channel;
  readonly ended: Promise<string>;
  readonly output: SandboxOutput;
  readonly #sandboxed: Sandboxed;
  readonly #socket: Duplex;
  readonly #maxMessage: number;
  readonly #reader: FrameDecoder;
  readonly #broker: Broker;
  readonly #servers: SandboxServers;
  readonly #heap: number;
  readonly #beginWatch: () => LimitWatch;
  #receive: (message: unknown) => void = () => undefined;
  #reason: string | undefined;
  #isHandling = false;
  /** Messages wait while the sandbox has used its share, and so does the code that sends more. */
  readonly #time = new TimeShare();

  constructor(source: SourceFile, deps: IsolationDeps, isolated: IsolatedRights) {
    const { loadTimeout, log } = deps.context;
    const limits = limitsOf(isolated.rights.settings);
    super("sandbox", source, deps, limits);
    const { message_size: maxMessage, open_files, subrequests } = limits;
    this.#maxMessage = maxMessage;
    this.#reader = new FrameDecoder(maxMessage);
    this.#heap = heapOf(deps, isolated);
    const connections = innerPath(this.folder, "connections");
    const { outside } = deps;
    this.#broker = new Broker({
      outside,
      grant: isolated.authority.network,
      open: () => connect({ path: connections, allowHalfOpen: true }),
      max: open_files,
      admit: subrequestLimit(source.name, subrequests, this.requests),
    });
    this.#servers = new SandboxServers({
      module: source.name,
      ports: deps.ports,
      broker: this.#broker,
      check: (port) => isolated.authority.use({ kind: "listen", item: String(port) }),
      accepted: (server, ends) => this.channel.notify("accepted", server, ends),
    });
    this.serve({
      dial: (host: unknown, port: unknown, request: unknown) => this.#broker.dial(host, port, request),
      openPort: (address: unknown, port: unknown) => this.#servers.listen(address, port),
      closePort: (id: unknown) => this.#servers.unlisten(id),
    });
    this.#sandboxed = this.#launch(
      isolated,
      {
        ...{ source: this.source, loadTimeout, maxMessage, subrequests },
        ...(outside !== undefined && { certificate: outside.certificate }),
      },
      connections,
    );
    const { child, socket } = this.#sandboxed;
    this.#socket = socket;
    this.output = new SandboxOutput(log.of(source.name, "*"), this.lines as LineAllowance, this.#time);
    this.output.follow(child.stdout as Readable, "info");
    this.output.follow(child.stderr as Readable, "warn");
    const endpoint: MessageEndpoint = {
      postMessage: (message) => this.#send(message),
      on: (_event, listener) => {
        this.#receive = listener;
        socket.on("readable", () => void this.#handle());
      },
    };
    const stray = () => {
      throw new FrameFault("a message that is neither a call nor a reply");
    };
    this.channel = new Channel(endpoint, this.handlers, stray, deserializeForeignError);
    // The process may have gone; its exit says so.
    socket.on("error", () => undefined);
    this.ended = new Promise((resolve) => {
      child.once("error", (error) => {
        this.#reason ??= `it cannot be started: ${reasonOf(error)}`;
        if (child.pid === undefined) void this.#exited(null, null).then(resolve);
      });
      child.once("exit", (code, signal) => void this.#exited(code, signal).then(resolve));
    });
    this.#beginWatch = () => this.#watch(limits, isolated);
    child.unref();
    for (const stream of [child.stdout, child.stderr, socket]) (stream as { unref?(): void } | null)?.unref?.();
  }

  #launch({ rights }: IsolatedRights, start: SandboxStart, connections: string): Sandboxed {
    const { name } = this.source;
    const isAudited = rights.policy?.isAudited === true;
    const compiled = openCompiledCode();
    try {
      const { policy, barrier } = makePolicy({ source: this.source, program, folder: this.folder }, rights);
      const launch = {
        ...{ name, program, policy, nodeOptions: nodeOptions(this.#heap, program) },
        ...(compiled !== undefined && { compiled }),
      };
      if (isAudited) {
        const paths = { requests: this.path, connections };
        this.layers = [];
        return launchAudited({ ...launch, args: [JSON.stringify({ ...start, paths })] });
      }
      const args = [JSON.stringify(start)];
      const sandboxed = launchSandboxed({ ...launch, args, listen: this.path, listenForConnections: connections });
      this.layers = layerStates({ name, active: sandboxed.layers, barrier });
      return sandboxed;
    } catch (error) {
      rmSync(this.folder, { recursive: true, force: true });
      throw error;
    } finally {
      if (compiled !== undefined) closeSync(compiled);
    }
  }

  override begin(): void {
    const watch = this.#beginWatch();
    void this.ended.then(() => watch.stop());
  }

  #watch(limits: ModuleLimits, { rights }: IsolatedRights): LimitWatch {
    const { policy } = rights;
    const data = dataFolderOf(rights);
    const limited: LimitedProcess = {
      pid: () => (this.isAlive ? moduleProcess(this.#sandboxed) : undefined),
      runs: policy?.isAudited === true || (policy?.run ?? []).length > 0,
      folders: [temporaryFolder(this.folder), ...(data === undefined ? [] : [data])],
      requests: this.requests,
    };
    return new LimitWatch(limits, limited, {
      exceeded: (reason) => void this.end(reason),
      nearly: (reason) => this.events?.nearly(reason),
      noticed: (reason) => this.events?.noticed(reason),
    });
  }

  /** Kills the process and its children. Resolves at once: `ended` resolves when it has gone. */
  async end(reason?: string): Promise<void> {
    this.#reason = reason ?? this.#reason;
    this.#kill();
  }

  #kill(): void {
    const { child } = this.#sandboxed;
    const { pid, exitCode, signalCode } = child;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    try {
      // The process leads a group, to which its children belong unless they leave it.
      process.kill(-pid, "SIGKILL");
    } catch {
      child.kill("SIGKILL");
    }
  }

  #send(message: unknown): void {
    const socket = this.#socket;
    if (socket.destroyed || !socket.writable) return;
    const frame = frameOf(message);
    if (socket.writableLength + frame.length > MAX_UNREAD) void this.end("it does not read what the host sends");
    else socket.write(frame);
  }

  /** Handles the messages that wait, in slices, as long as the sandbox has not used its share. */
  async #handle(): Promise<void> {
    if (this.#isHandling) return;
    this.#isHandling = true;
    try {
      for (let begun = performance.now(); ; ) {
        const message = this.#next();
        if (message === undefined) break;
        this.#receive(message.value);
        if (performance.now() - begun < SLICE_MS) continue;
        // Much of the work follows the calls: promises that they resolve.
        await new Promise<void>((resolve) => process.nextTick(resolve));
        await this.#pay(performance.now() - begun);
        begun = performance.now();
      }
    } catch (error) {
      if (!(error instanceof FrameFault)) throw error;
      this.#socket.destroy();
      void this.end(`it sent ${error.message}`);
    } finally {
      this.#isHandling = false;
    }
  }

  /** Returns the next message; undefined if none has arrived completely. */
  #next(): { readonly value: unknown } | undefined {
    for (;;) {
      const found = this.#reader.next();
      if (found !== undefined) {
        const fault = untrustedFault(found.value, this.#maxMessage);
        if (fault !== undefined) throw new FrameFault(fault);
        return found;
      }
      const piece = this.#socket.read() as Buffer | null;
      if (piece === null) return undefined;
      this.#reader.push(piece);
    }
  }

  /** Gives others their turn, and waits until the sandbox may use more of the host's time. */
  async #pay(took: number): Promise<void> {
    const pause = this.#time.spend(took);
    if (pause === 0) await nextTurn();
    else await sleep(pause, undefined, { ref: false });
  }

  async #exited(code: number | null, signal: NodeJS.Signals | null): Promise<string> {
    this.isAlive = false;
    this.#servers.close();
    this.#broker.close();
    // Its children may go on without it.
    this.#kill();
    const { stdout, stderr } = this.#sandboxed.child;
    const streams = [this.#socket, stdout, stderr].filter((stream) => stream !== null);
    const isRead = () => !this.#isHandling && streams.every((stream) => stream.readableEnded || stream.destroyed);
    const latest = performance.now() + MAX_LAST_MS;
    for (let idle = 0; !isRead() && idle < LAST_MS && performance.now() < latest; idle += LOOK_MS) {
      await sleep(LOOK_MS);
      if (this.#isHandling) idle = 0;
    }
    for (const stream of streams) stream.destroy();
    const killedAt = this.#sandboxed.cgroup?.killedAt;
    if (killedAt !== undefined) {
      const size = sizeText(killedAt);
      this.#reason ??= `it used ${size} of memory, and limits.memory allows ${size} (the kernel ended it)`;
    }
    return this.finish(this.#reason ?? this.output.lastWords ?? signal ?? `process.exit(${code})`);
  }
}
