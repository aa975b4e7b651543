/**
 * `modhost node store`: maintains a store that several hosts share, whether or not any of them is
 * running.
 */
import { dirname, resolve } from "node:path";
import type { SharedStoreSettings, SharedStoreVisit } from "modhost/node";
import { type Command, type CommandContext, counted, type Options, UsageError } from "../../../../core/cli/index.ts";
import { loadConfig } from "../../../../core/index.ts";
import { size_text } from "../../../../core/net/http.ts";
import { textOf } from "./repo.ts";

/** The option that names the config file of a host with the store. */
export const settingsOption = {
  settings: {
    type: "string",
    value: "FILE",
    help: "Config file of a host with the option node_store; default: the one that modhost run finds here",
  },
} as const satisfies Options;

const stat: Command = {
  name: "store stat",
  help: "Show how much a shared store contains, and how many hosts use it",
  options: { ...settingsOption, json: { type: "boolean", help: "As JSON" } },
  run: (context) =>
    visit(context, async (store) => {
      const stats = await store.stat();
      const { segments, blocks, bytes, live, position, hosts, unfinished } = stats;
      const lines = [
        `Blocks    ${blocks}`,
        `Segments  ${segments} (${size_text(bytes)}, of which stored blocks take ${size_text(live)})`,
        `Commits   ${position}`,
        `Hosts     ${hosts}`,
        ...unfinished.map(
          (folder) => `Only a part of the repo ${folder} was copied here: run modhost node migrate again`,
        ),
      ];
      context.stdout.write(context.options.json === true ? `${JSON.stringify(stats)}\n` : `${lines.join("\n")}\n`);
      return 0;
    }),
};

const verify: Command = {
  name: "store verify",
  help: "Compare the objects of a shared store with those that its database lists; exit status 1 if any is missing or damaged",
  options: { ...settingsOption, read: { type: "boolean", help: "Read every block and compare it with its hash" } },
  run: (context) =>
    visit(context, async (store) => {
      let faults = 0;
      for await (const { object, fault } of store.verify({ read: context.options.read === true })) {
        faults += 1;
        context.stdout.write(`${object} ${fault}\n`);
      }
      const { segments } = await store.stat();
      context.stdout.write(
        faults === 0 ? `${counted(segments, "segment")}, no faults\n` : `${counted(faults, "fault")}\n`,
      );
      return faults === 0 ? 0 : 1;
    }),
};

const orphans: Command = {
  name: "store orphans",
  help: "List objects of a shared store that nothing refers to, because a host ended while it was writing",
  options: { ...settingsOption, remove: { type: "boolean", help: "Delete them" } },
  run: (context) =>
    visit(context, async (store) => {
      const remove = context.options.remove === true;
      const keys = await store.orphans({ remove });
      for (const key of keys) context.stdout.write(`${key}\n`);
      context.stdout.write(`${counted(keys.length, "object")}${remove ? " removed" : ""}\n`);
      return 0;
    }),
};

const mounts: Command = {
  name: "store mounts",
  help: "List the folders that hosts of a shared store have written through their mounts, by peer ID and name; a folder stays while its host is away",
  options: {
    ...settingsOption,
    remove: { type: "string", value: "PEER", help: "Remove the folders of a host that will not return" },
  },
  run: (context) =>
    visit(context, async (store) => {
      const gone = textOf(context.options.remove);
      const trees = gone === undefined ? await store.mounts() : await store.removeMounts(gone);
      for (const { host, key, root } of trees) context.stdout.write(`${host} /ipns/${key} ${root ?? "empty"}\n`);
      context.stdout.write(`${trees.length} folders${gone === undefined ? "" : " removed"}\n`);
      return 0;
    }),
};

export const storeCommands: readonly Command[] = [stat, verify, orphans, mounts];

async function visit(context: CommandContext, use: (store: SharedStoreVisit) => Promise<number>): Promise<number> {
  if (context.args.length > 0) throw new UsageError(`no arguments are expected, got ${context.args.join(" ")}`);
  const settings = await settingsOf(context);
  const { visitSharedStore } = await import("modhost/node");
  const onNotice = (sentence: string) => context.stderr.write(`${sentence}\n`);
  return await visitSharedStore(settings, use, { onNotice });
}

/** @throws UsageError if no shared store is configured */
export async function settingsOf({ options, cwd, env }: CommandContext): Promise<SharedStoreSettings> {
  const named = textOf(options.settings);
  const path = named === undefined ? undefined : resolve(cwd, named);
  const config = await loadConfig({ cwd: path === undefined ? cwd : dirname(path), env, path });
  const { options: declared } = await import("../../../mod_node/mod_node.ts");
  config.declare(declared, "node");
  const settings = config.value("node_store") as SharedStoreSettings | undefined;
  if (settings !== undefined) return settings;
  throw new UsageError(
    `${config.file ?? "the configuration"} has no option node_store: name the config file of a host of the shared store with --settings`,
  );
}
