/**
 * `modhost node daemon`: output, files, signals and exit codes are the ones that launchers of
 * go-ipfs expect.
 */
import { rmSync } from "node:fs";
import { type Command, outliveReaders, serve } from "../../../../core/cli/index.ts";
import { levelOf } from "./level.ts";
import { apiFiles, repoFolder } from "./repo.ts";

export const daemon: Command = {
  name: "daemon",
  help: "Serve the repo at the addresses in its config, as go-ipfs does",
  options: {
    init: { type: "boolean", help: "Create the repo if there is none" },
    "init-config": { type: "string", value: "FILE", help: "Config file for --init to start from" },
    "init-profile": { type: "string", value: "NAMES", help: "Profiles that --init applies, separated by commas" },
    offline: { type: "boolean", help: "Do not open the network" },
    routing: {
      type: "string",
      value: "KIND",
      help: "Override Routing.Type: auto, autoclient, custom, delegated, dht, dhtclient, dhtserver, none or default",
    },
    "enable-pubsub-experiment": { type: "boolean", help: "Turn on pubsub" },
    "enable-namesys-pubsub": { type: "boolean", help: "Turn on pubsub, and names over pubsub" },
    "enable-gc": { type: "boolean", help: "Collect garbage automatically when the repo is nearly full" },
    "restore-pins": {
      type: "boolean",
      help: "If the metadata is lost, restore the copy of pins, files and names that is stored next to it",
    },
    "rebuild-pins-none": {
      type: "boolean",
      help: "If the metadata is lost, start with no pins, no files and no names",
    },
    migrate: { type: "boolean", help: "No effect: repos of older formats are refused" },
    mount: { type: "boolean", help: "Mount content and names as folders (Linux, as root)" },
    "mount-ipfs": { type: "string", value: "DIR", help: "Folder for content; default: Mounts.IPFS of the config" },
    "mount-ipns": { type: "string", value: "DIR", help: "Folder for names; default: Mounts.IPNS of the config" },
    "disable-transport-encryption": { type: "boolean", help: "Not supported: refused" },
    writable: { type: "boolean", help: "Override Gateway.Writable: the gateway accepts new content" },
    "unrestricted-api": { type: "boolean", help: "No effect" },
    "manage-fdlimit": { type: "boolean", help: "No effect: the limit of open files is always raised" },
    "enable-mplex-experiment": { type: "boolean", help: "No effect: see Swarm.Transports in the config" },
  },
  async run(context) {
    const { stdout } = context;
    // A launcher may close the pipe once it has read enough output.
    outliveReaders(stdout, context.stderr);
    // Imported only here, so that other commands of the program do not load the library.
    const { versionFacts } = await import("modhost/node");
    const { system, golang } = versionFacts();
    const { levels } = await import("../../rpc/levels.ts");
    const { title, version, repo } = levels[await levelOf(context)].traits;
    stdout.write(
      `Initializing daemon...\n${title} version: ${version}\nRepo version: ${repo}\n` +
        `System version: ${system}\nGolang version: ${golang}\n`,
    );
    const { Daemon } = await import("./service.ts");
    return serve(new Daemon(context), {
      interrupted: () =>
        stdout.write(
          "\nReceived interrupt signal, shutting down...\n(Hit ctrl-c again to force-shutdown the daemon.)\n",
        ),
      forced() {
        stdout.write("Received another interrupt before graceful shutdown, terminating...\n");
        for (const file of apiFiles(repoFolder(context))) rmSync(file, { force: true });
        return 255;
      },
    });
  },
};
