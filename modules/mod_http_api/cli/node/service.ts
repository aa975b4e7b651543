/**
 * The daemon: a node with its network, and a host that serves the RPC API and the gateway at the
 * repo's own addresses.
 */

import { createNode, isRepo, type Node } from "modhost/node";
import type { CommandContext, Service } from "../../../../core/cli/index.ts";
import { createHost, type Host, loadConfig, reasonOf } from "../../../../core/index.ts";
import { urlOf } from "../../http/addresses.ts";
import type { HttpApi } from "../../index.ts";
import { levels } from "../../rpc/levels.ts";
import { listenErrorOf, requireAddresses } from "./address_errors.ts";
import { readFlags } from "./flags.ts";
import { inlineModules } from "./inline_modules.ts";
import { agentOf, levelOf } from "./level.ts";
import { logSettings, setLevels } from "./logging.ts";
import { makeRepo } from "./make_repo.ts";
import { dataFolder, repoFolder } from "./repo.ts";

/** Seconds that running calls get at shutdown. Launchers kill a daemon after about three. */
const MAX_STOP_SECONDS = 2;
/** Seconds for which a client may accept no data before its connection is closed. */
const MAX_CLIENT_PAUSE = 3600;
/** Seconds for the cleanup after the running calls have ended. */
const MAX_CLEANUP_TIME = 0.5;

type Folders = NonNullable<Parameters<Node["lowLevel"]["mounts"]["mount"]>[0]>;

export class Daemon implements Service {
  readonly ended: Promise<void>;
  readonly #context: CommandContext;
  readonly #end = Promise.withResolvers<void>();
  #starting: Promise<void> = Promise.resolve();
  readonly #stop = new AbortController();
  #node: Node | undefined;
  #host: Host | undefined;

  constructor(context: CommandContext) {
    this.#context = context;
    this.ended = this.#end.promise;
  }

  get #stopping(): boolean {
    return this.#stop.signal.aborted;
  }

  start(): Promise<void> {
    this.#starting = this.#start();
    return this.#starting;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    // Ends calls that wait for peers. go-ipfs releases the repo at once, however long such calls
    // would take.
    const leaving = this.#node?.lowLevel.goOffline().catch((error) => this.report(error));
    await this.#host?.stop();
    await leaving;
    await this.#starting.catch(() => undefined);
    await this.#node?.close();
  }

  report(error: unknown): void {
    if (this.#host !== undefined) this.#host.report(error);
    else this.#context.stderr.write(`modhost: uncaught error: ${reasonOf(error)}\n`);
  }

  exiting(error: Error): void {
    const log = this.#host?.log;
    if (log !== undefined) log.error("The process exits without draining: %s", error.stack);
    else this.#context.stderr.write(`modhost: the process exits immediately: ${error.stack}\n`);
  }

  async #start(): Promise<void> {
    const context = this.#context;
    const { settings, newRepo, mount, ...wanted } = readFlags(context);
    const repo = repoFolder(context);
    if (newRepo !== undefined && !(await isRepo(repo))) await makeRepo(context, newRepo);
    if (this.#stopping) return;
    const onNotice = (sentence: string) => context.stderr.write(`modhost: ${sentence}\n`);
    const opening = createNode({
      repo,
      data: dataFolder(context),
      agent: await agentOf(context),
      init: false,
      onNotice,
      signal: this.#stop.signal,
      ...wanted,
    });
    const node = await opening.catch((error: unknown) => {
      if (/^ipfs repo needs migration/.test(reasonOf(error))) {
        this.#say("Found outdated fs-repo, migrations need to be run.");
      }
      throw error;
    });
    this.#node = node;
    setLevels(node.lowLevel.log, context);
    requireAddresses(node);
    if (!this.#stopping) await this.#goOnline(node);
    if (!this.#stopping) await this.#serve(node, settings, mount);
  }

  async #goOnline(node: Node): Promise<void> {
    if (node.offline) return this.#say("Swarm not listening, running in offline mode.");
    await node.goOnline();
    const { swarm } = await node.lowLevel.network();
    const relay = swarm.relayEnabled ? ["/p2p-circuit"] : [];
    for (const address of [...swarm.listenAddresses().map(String), ...relay].sort()) {
      this.#say(`Swarm listening on ${address}`);
    }
    for (const address of swarm.announcedAddresses()) this.#say(`Swarm announcing ${address}`);
  }

  /** Mounts as the API's `mount` command does; this also works without a network. */
  async #mount({ lowLevel: { mounts, sizeSharding } }: Node, folders: Folders): Promise<void> {
    const { sharding, importDefaults, joinsLeaf, maxChunk } = levels[await levelOf(this.#context)].traits;
    const choices = {
      importDefaults,
      joinsLeaf,
      maxChunk,
      sharding: sharding === "by size" ? sizeSharding : undefined,
    };
    const { ipfs, ipns } = await mounts.mount(folders, choices);
    this.#say(`IPFS mounted at: ${ipfs}`);
    this.#say(`IPNS mounted at: ${ipns}`);
  }

  async #serve(node: Node, settings: Readonly<Record<string, unknown>>, mount: Folders | undefined): Promise<void> {
    const { configPath, cwd, env } = this.#context;
    const values = {
      ...settings,
      modules_enabled: ["http", "http_gateway", "http_openmetrics"],
      http_ports: [],
      https_ports: [],
      stop_timeout: MAX_STOP_SECONDS + MAX_CLEANUP_TIME,
      unload_grace: MAX_STOP_SECONDS,
      // go-ipfs waits for clients however long they accept no data, even while they are suspended.
      http_progress_timeout: MAX_CLIENT_PAUSE,
    };
    const config = await loadConfig({ path: configPath, search: false, cwd, env, values });
    if (this.#stopping) return;
    const host = createHost({
      config,
      modules: inlineModules(node),
      tls: false,
      log: logSettings(this.#context, node.lowLevel.log),
    });
    this.#host = host;
    void host.ended.then(() => this.#end.resolve());
    await host.start().catch((error: unknown) => {
      throw listenErrorOf(error, node);
    });
    if (host.state !== "running") return;
    const failed = host.modules().find(({ status }) => status === "failed");
    if (failed !== undefined) throw new Error(failed.note ?? `the module ${failed.name} does not load`);
    const { listening, webui } = host.exports<HttpApi>("http_api");
    const { api, gateway } = listening;
    for (const address of api) {
      this.#say(`API server listening on ${address}`);
      const url = webui.isThere ? urlOf(address) : undefined;
      if (url !== undefined) this.#say(`WebUI: ${url}/webui`);
    }
    if (mount !== undefined && !this.#stopping) await this.#mount(node, mount);
    const access = node.lowLevel.repo.config.value("Gateway.Writable") ? "writable" : "readonly";
    for (const address of gateway) this.#say(`Gateway (${access}) server listening on ${address}`);
    this.#say("Daemon is ready");
  }

  #say(line: string): void {
    this.#context.stdout.write(`${line}\n`);
  }
}
